//! `site-admin runs submit`.

use std::fmt;

use chrono::{DateTime, Utc};
use clap::Args;
use execution_core::{AttemptNumber, Registry};
use serde::Serialize;

use super::RunArguments;
use crate::{
    Failure,
    commands::{parser, time},
    output::Format,
};

#[derive(Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    run: RunArguments,
    /// The number of the Attempt: the one after the newest.
    #[arg(long, value_name = "NUMBER", value_parser = parser(AttemptNumber::parse))]
    attempt: AttemptNumber,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Submit,
    format: Format,
) -> Result<(), Failure> {
    let run = arguments.run.run_id;
    let submitted = registry.submit(&run, arguments.attempt).await?;
    format.print(&Submitted {
        run_id: run.as_str(),
        attempt: submitted.value.number.get(),
        submitted_at: submitted.value.submitted_at,
        new: submitted.new,
    })
}

/// An Attempt that is submitted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Submitted<'a> {
    run_id: &'a str,
    attempt: i32,
    submitted_at: DateTime<Utc>,
    new: bool,
}

impl fmt::Display for Submitted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.new { "new" } else { "known" };
        let at = time(self.submitted_at);
        write!(f, "{}: Attempt {} submitted at {at}, {state}", self.run_id, self.attempt)
    }
}
