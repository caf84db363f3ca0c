//! `site-admin keys`: members' SSH keys, in the place of the control plane.

mod add;
mod failure;
mod import;
pub mod line;
mod list;
mod remove;
mod shown;

use clap::Subcommand;
use ring::rand::SecureRandom;
use ssh_access::{REGISTRY_ROLE, Registry};

use crate::{Failure, contexts::KEYS_URL, database::restricted_pool, output::Format};

#[derive(Subcommand)]
pub(crate) enum Keys {
    /// Add a key of a member, from a file as ssh-keygen writes it.
    ///
    /// The same key again changes nothing. A member has 32 at the most; what is no key by the rules, or
    /// is there with another end, is refused (65).
    Add(add::Add),
    /// Remove a key, for ever: every Site refuses it within its window.
    ///
    /// Removing it again changes nothing, says so and exits with 0.
    Remove(remove::Remove),
    /// List the keys of a member.
    List(list::List),
    /// Add many keys, one JSON object a line: {"memberId", "publicKey", "expiresAt"}.
    ///
    /// Each line is told what became of it. Where one was refused it exits with 65, and the others are
    /// added all the same; running it again changes nothing that was done. Lines are stored some
    /// hundred at a time, and told when they are stored.
    Import(import::Import),
}

pub(crate) async fn run(
    command: Keys,
    format: Format,
    random: &(dyn SecureRandom + Sync),
) -> Result<(), Failure> {
    let registry = registry().await?;
    match command {
        Keys::Add(arguments) => add::run(&registry, arguments, format, random).await,
        Keys::Remove(arguments) => remove::run(&registry, arguments, format).await,
        Keys::List(arguments) => list::run(&registry, arguments, format).await,
        Keys::Import(arguments) => import::run(&registry, &arguments, format, random).await,
    }
}

/// Keys and accounts, by the credential of the registry.
pub(crate) async fn registry() -> Result<Registry, Failure> {
    Ok(Registry::new(restricted_pool(KEYS_URL, REGISTRY_ROLE).await?))
}
