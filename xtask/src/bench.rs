//! `cargo xtask bench`: how fast it is, each figure beside its floor from the same minutes.
//!
//! It measures release builds, itself among them: the load comes from this process. Nothing here
//! judges a figure; a run is only void, where what was measured was not done right.

mod commands;
mod figure;
mod machine;
mod page;
mod report;
mod ssh;
mod world;

use std::{
    env,
    error::Error,
    io,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use test_support::process::{Exit, LastSignal, Process};

use crate::{
    step::{self, command},
    stop::Stop,
};

#[derive(Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Ordered commands: throughput, latency, footprint
    Commands(commands::Commands),
    /// SSH keys: a snapshot, a change, an import
    Ssh(ssh::Ssh),
    /// A server that is a floor; a benchmark starts it
    #[command(hide = true)]
    BareServer(commands::bare_server::BareServer),
}

/// What is built: the programs that a run starts, and this one.
const BUILD: [&str; 12] = [
    "build",
    "--release",
    "--package",
    "site-api",
    "--package",
    "site-admin",
    "--package",
    "site-agent",
    "--package",
    "ssh-access-bin",
    "--package",
    "xtask",
];

pub(crate) async fn run(stop: &Stop, bench: Bench) -> Result<(), Box<dyn Error>> {
    match &bench.what {
        What::BareServer(server) => stop.unless(server.serve()).await?,
        What::Commands(commands) if runs_here(commands.quick()) => {
            commands::run(stop, commands).await
        }
        What::Ssh(ssh) if runs_here(ssh.quick()) => ssh::run(stop, ssh).await,
        What::Commands(_) | What::Ssh(_) => again_as_release(stop).await,
    }
}

/// Whether this build measures: a release build does, and any other where nothing is measured.
fn runs_here(quick: bool) -> bool {
    quick || !cfg!(debug_assertions)
}

/// Builds everything for release and runs the same command with it.
async fn again_as_release(stop: &Stop) -> Result<(), Box<dyn Error>> {
    step::run(stop, command("cargo", &BUILD)).await?;
    let program = release_of(&env::current_exe()?)?;
    let again = command(&program, &env::args_os().skip(1).collect::<Vec<_>>());
    let process = Process::start_printing(again, LastSignal::Terminate)?;
    let exit = tokio::select! {
        exit = process.wait_exit(std::time::Duration::MAX) => exit?,
        () = stop.requested() => {
            process.signal(rustix::process::Signal::TERM);
            process.wait_exit(std::time::Duration::from_secs(60)).await?
        }
    };
    match exit {
        Exit::Code(0) => Ok(()),
        other => Err(format!("the release build of the benchmark failed ({other})").into()),
    }
}

/// The same program in cargo's folder for release builds.
fn release_of(ours: &Path) -> io::Result<PathBuf> {
    let name = ours.file_name();
    let target = ours.parent().and_then(Path::parent);
    match (target, name) {
        (Some(target), Some(name)) => Ok(target.join("release").join(name)),
        _ => Err(io::Error::other("xtask does not stand in a target folder of cargo")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_build_stands_beside_the_debug_build() {
        let found = release_of(Path::new("/x/target/debug/xtask")).unwrap();
        assert_eq!(found, Path::new("/x/target/release/xtask"));
    }
}
