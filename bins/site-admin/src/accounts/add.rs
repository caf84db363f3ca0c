//! `site-admin accounts add`.

use std::fmt;

use clap::Args;
use serde::Serialize;
use ssh_access::{MemberId, Registry, SiteId, UnixUser};

use super::shown::Shown;
use crate::{
    Failure,
    commands::{parser, time},
    output::Format,
};

#[derive(Args)]
pub(crate) struct Add {
    /// The Site.
    #[arg(long, value_parser = parser(SiteId::parse))]
    site: SiteId,
    /// The member.
    #[arg(long, value_parser = parser(MemberId::parse))]
    member: MemberId,
    /// The user at the Site; never one of the system.
    #[arg(long, value_name = "NAME", value_parser = parser(UnixUser::parse))]
    unix_user: UnixUser,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Add,
    format: Format,
) -> Result<(), Failure> {
    let Add { site, member, unix_user } = arguments;
    let done = registry.add_account(&site, &member, &unix_user).await?;
    format.print(&Added { account: Shown::of(&done.value), new: done.new })
}

/// An account that is added.
#[derive(Serialize)]
struct Added {
    #[serde(flatten)]
    account: Shown,
    new: bool,
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.new { "new" } else { "known" };
        write!(f, "{}: added at {}, {state}", self.account.account_id, time(self.account.added_at))
    }
}
