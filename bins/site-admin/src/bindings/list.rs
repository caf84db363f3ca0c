//! `site-admin bindings list`.

use clap::Args;
use resource_provisioning::{BindingId, Listing, MemberId, Registry, SiteId};

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
    /// Also those that were released.
    #[arg(long)]
    released: bool,
    /// Only those after this one.
    #[arg(long, value_name = "BINDING_ID", value_parser = parser(BindingId::parse))]
    after: Option<BindingId>,
    /// At most so many, 1 to 1,000.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: List,
    format: Format,
) -> Result<(), Failure> {
    let List { site, member, released, after, limit } = arguments;
    let bindings = registry.list(&site, &Listing { member, released, after, limit }).await?;
    format.heading(Shown::heading())?;
    bindings.iter().try_for_each(|binding| format.print(&Shown::of(binding)))
}
