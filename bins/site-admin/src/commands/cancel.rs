//! `site-admin commands cancel`.

use std::fmt;

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;
use site_coordination::{Cancelled, Producer};

use super::{CommandArguments, shown::time};
use crate::{Failure, output::Format};

#[derive(Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    command: CommandArguments,
}

pub(super) async fn run(
    producer: &Producer,
    arguments: Cancel,
    format: Format,
) -> Result<(), Failure> {
    let (stream, id) = arguments.command.parts()?;
    let cancelled = producer.cancel(&stream, &id).await;
    producer.flush_hints().await;
    let Cancelled { cancel_rev, at, new } = cancelled?;
    format.print(&Mark {
        command_id: id.as_str().to_owned(),
        cancel_rev,
        cancelled_at: at,
        changed: new,
    })
}

/// The mark of a cancelled command.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    command_id: String,
    cancel_rev: u64,
    cancelled_at: DateTime<Utc>,
    changed: bool,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command_id, cancel_rev, cancelled_at, .. } = self;
        let at = time(*cancelled_at);
        if self.changed {
            return write!(f, "{command_id}: cancelled at {at}, mark {cancel_rev}");
        }
        write!(f, "{command_id}: was cancelled already, at {at}, mark {cancel_rev}")
    }
}
