//! `site-admin keys list`.

use clap::Args;
use ssh_access::{KeyId, KeyListing, MemberId, Registry};

use super::shown::Shown;
use crate::{Failure, commands::parser, output::Format};

#[derive(Args)]
pub(crate) struct List {
    /// The member.
    #[arg(long, value_parser = parser(MemberId::parse))]
    member: MemberId,
    /// Also those that were removed or have expired.
    #[arg(long)]
    all: bool,
    /// Only those after this one.
    #[arg(long, value_name = "KEY_ID", value_parser = parser(KeyId::parse))]
    after: Option<KeyId>,
    /// At most so many, 1 to 1,000.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: List,
    format: Format,
) -> Result<(), Failure> {
    let List { member, all, after, limit } = arguments;
    let keys = registry.keys(&member, &KeyListing { all, after, limit }).await?;
    format.heading(Shown::heading())?;
    keys.iter().try_for_each(|key| format.print(&Shown::of(key)))
}
