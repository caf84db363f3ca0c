//! `site-admin runs accept`.

use std::fmt;

use chrono::{DateTime, Utc};
use clap::Args;
use execution_core::{Material, Registry};
use serde::Serialize;

use super::document;
use crate::{Failure, commands::time, input, output::Format};

#[derive(Args)]
pub(crate) struct Accept {
    /// A file with one JSON object, `-` for standard input: {"runId", "projectId", "memberId",
    /// "site", "environment", "deadline", "repository": {"instance", "projectId", "path", "ref",
    /// "commit"}, "material"}. The material is any JSON, and is kept to the byte.
    #[arg(value_name = "FILE")]
    document: String,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Accept,
    format: Format,
) -> Result<(), Failure> {
    let file = arguments.document;
    let text = input::read(&file, 2 * Material::MAX_BYTES)?;
    let run = document::parse(&text).map_err(|error| Failure::data(format!("{file}: {error}")))?;
    let accepted = registry.accept(run).await?;
    format.print(&Accepted {
        run_id: accepted.value.accepted.id.as_str(),
        accepted_at: accepted.value.accepted_at,
        new: accepted.new,
    })
}

/// A Run that is accepted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Accepted<'a> {
    run_id: &'a str,
    accepted_at: DateTime<Utc>,
    new: bool,
}

impl fmt::Display for Accepted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.new { "new" } else { "known" };
        write!(f, "{}: accepted at {}, {state}", self.run_id, time(self.accepted_at))
    }
}
