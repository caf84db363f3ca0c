//! `site-admin keys remove`.

use std::fmt;

use clap::Args;
use serde::Serialize;
use ssh_access::{KeyId, MemberId, Registry};

use super::shown::Shown;
use crate::{
    Failure,
    commands::{parser, time},
    output::Format,
};

#[derive(Args)]
pub(crate) struct Remove {
    /// The key's id.
    #[arg(value_parser = parser(KeyId::parse))]
    key_id: KeyId,
    /// Only where it is a key of this member; another's is as absent (66).
    #[arg(long, value_parser = parser(MemberId::parse))]
    member: Option<MemberId>,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Remove,
    format: Format,
) -> Result<(), Failure> {
    let done = registry.remove_key(&arguments.key_id, arguments.member.as_ref()).await?;
    format.print(&Removed { key: Shown::of(&done.value), changed: done.new })
}

/// A key that is removed.
#[derive(Serialize)]
struct Removed {
    #[serde(flatten)]
    key: Shown,
    changed: bool,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let already = if self.changed { "" } else { " already" };
        let at = self.key.removed_at.map(time).unwrap_or_default();
        write!(f, "{}: removed{already}, at {at}", self.key.key_id)
    }
}
