//! `cargo xtask qualify`: scenarios against the real programs, broken on purpose, with a check of
//! everything that happened.

mod authority;
mod commands;
mod ssh;

use std::error::Error;

use clap::Subcommand;

use crate::stop::Stop;

#[derive(Subcommand)]
pub(crate) enum Lane {
    /// Ordered commands under faults: Sites whose programs, database and network are broken all the
    /// time, and a check of the whole history
    Commands(commands::Arguments),
    /// What a Run may do and who may see its output: taken away, given back, and everything that
    /// answers killed
    Authority(authority::Arguments),
    /// Members' keys: to real logins and to their refusal, with the agent cut off, with everything
    /// killed, and after an older database was restored. Root runs it
    Ssh(ssh::Arguments),
}

pub(crate) async fn run(stop: &Stop, lane: Lane) -> Result<(), Box<dyn Error>> {
    match lane {
        Lane::Commands(arguments) => commands::run(stop, arguments).await,
        Lane::Authority(arguments) => authority::run(stop, arguments).await,
        Lane::Ssh(arguments) => ssh::run(stop, arguments).await,
    }
}
