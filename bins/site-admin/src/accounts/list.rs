//! `site-admin accounts list`.

use clap::Args;
use ssh_access::{AccountId, AccountListing, MemberId, Registry, SiteId};

use super::shown::Shown;
use crate::{Failure, commands::parser, output::Format};

#[derive(Args)]
pub(crate) struct List {
    /// The Site.
    #[arg(long, value_parser = parser(SiteId::parse))]
    site: SiteId,
    /// Only those of this member.
    #[arg(long, value_parser = parser(MemberId::parse))]
    member: Option<MemberId>,
    /// Also those that were removed.
    #[arg(long)]
    all: bool,
    /// Only those after this one.
    #[arg(long, value_name = "ACCOUNT_ID", value_parser = parser(AccountId::parse))]
    after: Option<AccountId>,
    /// At most so many, 1 to 1,000.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: List,
    format: Format,
) -> Result<(), Failure> {
    let List { site, member, all, after, limit } = arguments;
    let accounts = registry.accounts(&site, &AccountListing { member, all, after, limit }).await?;
    format.heading(Shown::heading())?;
    accounts.iter().try_for_each(|account| format.print(&Shown::of(account)))
}
