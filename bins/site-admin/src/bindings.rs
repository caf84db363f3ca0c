//! `site-admin bindings`: which native account of a Site a member has.

mod failure;
mod list;
mod release;
mod retain;
mod shown;

use clap::Subcommand;
use resource_provisioning::{Registry, WRITER_ROLE};

use crate::{Failure, contexts::BINDINGS_WRITER_URL, database::restricted_pool, output::Format};

#[derive(Subcommand)]
pub(crate) enum Bindings {
    /// Retain a binding of a member to a native account of a Site.
    ///
    /// The same values again change nothing. Other values are refused (65) until the binding that is
    /// retained was released.
    Retain(retain::Retain),
    /// Release a binding, for ever: the member's Runs at the Site may do nothing from now on.
    ///
    /// It names one binding, as `list` prints it. Releasing it again changes nothing, says so and
    /// exits with 0.
    Release(release::Release),
    /// List the bindings of a Site, in the order in which they were retained.
    List(list::List),
}

pub(crate) async fn run(command: Bindings, format: Format) -> Result<(), Failure> {
    let registry = Registry::new(restricted_pool(BINDINGS_WRITER_URL, WRITER_ROLE).await?);
    match command {
        Bindings::Retain(arguments) => retain::run(&registry, arguments, format).await,
        Bindings::Release(arguments) => release::run(&registry, arguments, format).await,
        Bindings::List(arguments) => list::run(&registry, arguments, format).await,
    }
}
