//! `site-admin bindings retain`.

use std::fmt;

use clap::Args;
use resource_provisioning::{Account, Gid, MemberId, NewBinding, Registry, SiteId, Uid, UnixUser};
use serde::Serialize;

use super::shown::Shown;
use crate::{
    Failure,
    commands::{parser, time},
    output::Format,
};

#[derive(Args)]
pub(crate) struct Retain {
    /// The Site.
    #[arg(long, value_parser = parser(SiteId::parse))]
    site: SiteId,
    /// The member.
    #[arg(long, value_parser = parser(MemberId::parse))]
    member: MemberId,
    /// The user at the Site that the member's work runs as; never root.
    #[arg(long, value_name = "NAME", value_parser = parser(UnixUser::parse))]
    unix_user: UnixUser,
    /// The user's number, from 1000 up.
    #[arg(long, value_name = "NUMBER", value_parser = parser(Uid::parse))]
    uid: Uid,
    /// The number of the user's group, from 100 up.
    #[arg(long, value_name = "NUMBER", value_parser = parser(Gid::parse))]
    gid: Gid,
    /// The account at the Site that the work is counted for.
    #[arg(long, value_name = "NAME", value_parser = parser(Account::parse))]
    account: Account,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Retain,
    format: Format,
) -> Result<(), Failure> {
    let Retain { site, member, unix_user, uid, gid, account } = arguments;
    let wanted = NewBinding { site, member, unix_user, uid, gid, account };
    let done = registry.retain(wanted).await?;
    format.print(&Retained { binding: Shown::of(&done.binding), new: done.new })
}

/// A binding that is retained.
#[derive(Serialize)]
struct Retained {
    #[serde(flatten)]
    binding: Shown,
    new: bool,
}

impl fmt::Display for Retained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.new { "new" } else { "known" };
        write!(
            f,
            "{}: retained at {}, {state}",
            self.binding.binding_id,
            time(self.binding.retained_at)
        )
    }
}
