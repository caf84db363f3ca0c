//! `site-admin`: what an administrator of Site Control does by hand.
//!
//! Results go to standard output, everything else to standard error. Secrets are never taken from
//! the command line.
//!
//! It is a library so that tests can reach its parsers; nothing else depends on it.

mod accounts;
mod beto;
mod bindings;
mod broker;
mod commands;
mod completions;
mod contexts;
mod credentials;
mod database;
mod exit;
mod failure;
mod input;
mod keys;
mod manifest;
mod new_files;
mod output;
#[doc(hidden)]
pub mod parsers;
mod provision;
mod runs;
mod status;
mod tls;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use ring::rand::SystemRandom;

use crate::{exit::Exit, failure::Failure, output::Format};

/// Administration of Site Control.
///
/// Results go to standard output, everything else to standard error. Settings are environment
/// variables, and NAME_FILE names a file with the value; no secret is an argument.
#[derive(Parser)]
#[command(name = "site-admin", version, after_help = Exit::table())]
struct Arguments {
    /// Print results as JSON, one object a line, in place of tables for people.
    #[arg(long, global = true)]
    json: bool,
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
    ///
    /// The producer's credential is in SITE_COORDINATION_PRODUCER_DATABASE_URL. `prune` works with
    /// the keeper's, in SITE_COORDINATION_KEEPER_DATABASE_URL.
    #[command(subcommand)]
    Commands(commands::Commands),
    /// Runs that the control plane accepts, and their Attempts.
    ///
    /// The writer's credential is in EXECUTION_CORE_WRITER_DATABASE_URL.
    #[command(subcommand)]
    Runs(runs::Runs),
    /// Native accounts of a Site that members have.
    ///
    /// The writer's credential is in RESOURCE_PROVISIONING_WRITER_DATABASE_URL.
    #[command(subcommand)]
    Bindings(bindings::Bindings),
    /// SSH keys of members.
    ///
    /// The registry's credential is in SSH_ACCESS_REGISTRY_DATABASE_URL.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Which users of a Site members are, for their SSH keys.
    ///
    /// The registry's credential is in SSH_ACCESS_REGISTRY_DATABASE_URL.
    #[command(subcommand)]
    Accounts(accounts::Accounts),
    /// Show each stream: what waits, for how long, and who takes it.
    ///
    /// The producer's credential is in SITE_COORDINATION_PRODUCER_DATABASE_URL.
    Status(status::Status),
    /// What a RabbitMQ broker needs for asking Beto.
    #[command(subcommand)]
    Broker(broker::Broker),
    /// A responder in Beto's place, for development and tests.
    #[command(subcommand)]
    Beto(beto::Beto),
    /// Print a script that completes this program's arguments in a shell.
    ///
    /// For bash: `source <(site-admin completions bash)`. For zsh: put it as `_site-admin` into a
    /// folder of $fpath. For fish: put it as site-admin.fish into ~/.config/fish/completions.
    Completions(completions::Completions),
}

/// The whole program: from its arguments to its exit code.
pub async fn run() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    let now = chrono::Utc::now();
    #[expect(clippy::disallowed_methods, reason = "the one place that makes the random source")]
    let random = SystemRandom::new();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return answered(&answer),
    };
    let format = if arguments.json { Format::Json } else { Format::Text };
    let done = match arguments.area {
        Area::Database(command) => database::run(command, format, &random).await.map(done),
        Area::Credentials(command) => credentials::run(command, format, now, &random).await,
        Area::Tls(command) => tls::run(&command, format, now).map(done),
        Area::Commands(command) => commands::run(command, format).await,
        Area::Runs(command) => runs::run(command, format).await.map(done),
        Area::Bindings(command) => bindings::run(command, format).await.map(done),
        Area::Keys(command) => keys::run(command, format, &random).await.map(done),
        Area::Accounts(command) => accounts::run(command, format).await.map(done),
        Area::Status(arguments) => status::run(arguments, format).await.map(done),
        Area::Broker(command) => broker::run(command, format, &random).map(done),
        Area::Beto(command) => beto::run(command, format).await.map(done),
        Area::Completions(arguments) => {
            completions::run(&arguments, Arguments::command()).map(done)
        }
    };
    done.map_or_else(Failure::report, ExitCode::from)
}

fn done((): ()) -> Exit {
    Exit::Done
}

/// Help and version are answers; anything else is a mistake of the arguments.
fn answered(answer: &clap::Error) -> ExitCode {
    match output::answer(answer) {
        _ if answer.use_stderr() => Exit::Usage.into(),
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
