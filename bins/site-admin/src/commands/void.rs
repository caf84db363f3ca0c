//! `site-admin commands void`.

use std::fmt;

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;
use site_coordination::{Producer, VoidNote, Voided};

use super::{CommandArguments, parser, shown::time};
use crate::{Failure, output::Format};

#[derive(Args)]
pub(crate) struct Void {
    #[command(flatten)]
    command: CommandArguments,
    /// Why, for whoever asks later: one line of at most 1,024 bytes. It is stored with the command,
    /// and no Runtime sees it.
    #[arg(long, value_parser = parser(VoidNote::parse))]
    note: VoidNote,
}

pub(super) async fn run(
    producer: &Producer,
    arguments: Void,
    format: Format,
) -> Result<(), Failure> {
    let (stream, id) = arguments.command.parts()?;
    let voided = producer.void(&stream, &id, &arguments.note).await;
    producer.flush_hints().await;
    let Voided { reason, note, at } = voided?;
    let (command_id, reason) = (id.as_str().to_owned(), reason.as_str());
    format.print(&Ended { command_id, reason, note, voided_at: at })
}

/// How the command ended, by this run or before.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    command_id: String,
    reason: &'static str,
    note: Option<String>,
    voided_at: DateTime<Utc>,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command_id, reason, note, voided_at } = self;
        write!(f, "{command_id}: voided at {}, {reason}", time(*voided_at))?;
        note.iter().try_for_each(|note| write!(f, ": {note}"))
    }
}
