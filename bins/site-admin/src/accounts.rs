//! `site-admin accounts`: which users of a Site members are.

mod add;
mod list;
mod remove;
mod shown;

use clap::Subcommand;

use crate::{Failure, keys::registry, output::Format};

#[derive(Subcommand)]
pub(crate) enum Accounts {
    /// Make a member a user of a Site: its keys let it in there from now on.
    ///
    /// The same again changes nothing. A user of another member is refused (65) until it was removed.
    Add(add::Add),
    /// Take a user of a Site from its member: no key lets it in there any more, within the window.
    ///
    /// Removing it again changes nothing, says so and exits with 0.
    Remove(remove::Remove),
    /// List the accounts of a Site, in the order in which they were added.
    List(list::List),
}

pub(crate) async fn run(command: Accounts, format: Format) -> Result<(), Failure> {
    let registry = registry().await?;
    match command {
        Accounts::Add(arguments) => add::run(&registry, arguments, format).await,
        Accounts::Remove(arguments) => remove::run(&registry, arguments, format).await,
        Accounts::List(arguments) => list::run(&registry, arguments, format).await,
    }
}
