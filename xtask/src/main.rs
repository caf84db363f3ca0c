//! `cargo xtask`: everything that a developer and the CI run, without a script in another language.
//!
//! Nothing here is shipped. It prints for people; each command is one module.

#![expect(clippy::print_stdout, reason = "a command line tool")]

mod bench;
mod claim;
mod demo;
mod docs;
mod fuzz;
mod lint;
mod postgres;
mod qualify;
mod rules;
mod ssh_site;
mod step;
mod stop;
mod surroundings;
mod test;
mod tools;

use std::{error::Error, process::ExitCode};

use clap::{Parser, Subcommand};

use stop::Stop;

/// Works on Site Control.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows the whole way: a Site's commands pulled, run and answered, the API killed in between
    Demo(demo::Demo),
    /// Measures a release build, each figure beside its floor from the same minutes
    Bench(bench::Bench),
    /// Proves a promise under faults, in a lane
    Qualify {
        #[command(subcommand)]
        lane: qualify::Lane,
    },
    /// Prepares what is missing, lints, runs every test and leaves nothing behind
    Test {
        /// Arguments for `cargo nextest run`, such as `-p site-coordination`: only what they choose
        /// is run then, without the lints and the documentation's examples
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        nextest: Vec<String>,
    },
    /// Checks the formatting, the generated pages, clippy, and who depends on whom
    Lint,
    /// Writes docs/ERRORS.md and docs/openapi.yaml from `site-protocol`
    Docs {
        /// Writes nothing, and fails where a page is not what would be written
        #[arg(long)]
        check: bool,
    },
    /// Runs the fuzz targets, one after the other, until one fails
    Fuzz(fuzz::Fuzz),
    /// Keeps a PostgreSQL for tests running until Ctrl-C
    Postgres,
}

// Children are started by a thread that lives as long as the process; one thread is enough for the
// rest.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            let mut source = failure.source();
            while let Some(cause) = source {
                eprintln!("  because: {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<(), Box<dyn Error>> {
    let stop = Stop::on_signals()?;
    match command {
        Command::Bench(bench) => bench::run(&stop, bench).await,
        Command::Demo(demo) => demo::run(&stop, demo).await,
        Command::Qualify { lane } => qualify::run(&stop, lane).await,
        Command::Test { nextest } => test::run(&stop, nextest).await,
        Command::Lint => lint::run(&stop).await,
        Command::Docs { check: true } => docs::check(),
        Command::Docs { check: false } => Ok(docs::write()?),
        Command::Fuzz(fuzz) => fuzz::run(&stop, fuzz).await,
        Command::Postgres => postgres::keep(&stop).await,
    }
}
