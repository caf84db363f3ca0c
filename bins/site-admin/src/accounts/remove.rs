//! `site-admin accounts remove`.

use std::fmt;

use clap::Args;
use serde::Serialize;
use ssh_access::{Registry, SiteId, UnixUser};

use super::shown::Shown;
use crate::{
    Failure,
    commands::{parser, time},
    output::Format,
};

#[derive(Args)]
pub(crate) struct Remove {
    /// The Site.
    #[arg(long, value_parser = parser(SiteId::parse))]
    site: SiteId,
    /// The user at the Site.
    #[arg(long, value_name = "NAME", value_parser = parser(UnixUser::parse))]
    unix_user: UnixUser,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Remove,
    format: Format,
) -> Result<(), Failure> {
    let done = registry.remove_account(&arguments.site, &arguments.unix_user).await?;
    format.print(&Removed { account: Shown::of(&done.value), changed: done.new })
}

/// An account that is removed.
#[derive(Serialize)]
struct Removed {
    #[serde(flatten)]
    account: Shown,
    changed: bool,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let already = if self.changed { "" } else { " already" };
        let at = self.account.removed_at.map(time).unwrap_or_default();
        write!(f, "{}: removed{already}, at {at}", self.account.account_id)
    }
}
