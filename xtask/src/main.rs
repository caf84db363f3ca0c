//! `cargo xtask`: everything that a developer and the CI run, without a script in another language.
//!
//! Nothing here is shipped. It prints for people; each command is one module.

#![expect(clippy::print_stdout, reason = "a command line tool")]

mod postgres;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Works on Site Control")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Keeps a PostgreSQL for tests running until Ctrl-C
    Postgres,
}

// The children are made by a thread that lives as long as the process; one thread is enough for the rest.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Postgres => postgres::keep().await,
    };
    match result {
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
