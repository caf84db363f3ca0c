//! `site-admin runs cancel`.

use std::fmt;

use chrono::{DateTime, Utc};
use clap::Args;
use execution_core::Registry;
use serde::Serialize;

use super::RunArguments;
use crate::{Failure, commands::time, output::Format};

#[derive(Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    run: RunArguments,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Cancel,
    format: Format,
) -> Result<(), Failure> {
    let run = arguments.run.run_id;
    let cancelled = registry.cancel(&run).await?;
    format.print(&Cancelled {
        run_id: run.as_str(),
        cancelled_at: cancelled.value,
        changed: cancelled.new,
    })
}

/// A Run that is cancelled.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled<'a> {
    run_id: &'a str,
    cancelled_at: DateTime<Utc>,
    changed: bool,
}

impl fmt::Display for Cancelled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let already = if self.changed { "" } else { " already" };
        write!(f, "{}: cancelled{already}, at {}", self.run_id, time(self.cancelled_at))
    }
}
