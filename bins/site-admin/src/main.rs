//! `site-admin`: what an administrator of Site Control does by hand.
//!
//! Results go to standard output, everything else to standard error. Secrets are never taken from
//! the command line.

mod commands;
mod credentials;
mod database;
mod failure;
mod new_files;
mod output;
mod provision;
mod tls;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ring::rand::SystemRandom;
use service_kit::EXIT_SETTINGS;

use crate::failure::Failure;

/// Administration of Site Control.
#[derive(Parser)]
#[command(name = "site-admin", version)]
struct Arguments {
    #[command(subcommand)]
    area: Area,
}

#[derive(Subcommand)]
enum Area {
    /// Roles and schemas of the database.
    #[command(subcommand)]
    Database(database::Database),
    /// Native bearers and the grants file that lists them.
    #[command(subcommand)]
    Credentials(credentials::Credentials),
    /// The certificate of the Site API.
    #[command(subcommand)]
    Tls(tls::Tls),
    /// Commands of a Site's streams.
    #[command(subcommand)]
    Commands(commands::Commands),
}

#[tokio::main]
async fn main() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    let now = chrono::Utc::now();
    #[expect(clippy::disallowed_methods, reason = "the one place that makes the random source")]
    let random = SystemRandom::new();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return answered(&answer),
    };
    let done = match arguments.area {
        Area::Database(command) => database::run(command, &random).await,
        Area::Credentials(command) => credentials::run(command, now, &random),
        Area::Tls(command) => tls::run(&command, now),
        Area::Commands(command) => commands::run(command).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Help and version are answers; anything else is a mistake of the arguments (`EX_USAGE`).
fn answered(answer: &clap::Error) -> ExitCode {
    match output::answer(answer) {
        _ if answer.use_stderr() => ExitCode::from(EXIT_SETTINGS),
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
