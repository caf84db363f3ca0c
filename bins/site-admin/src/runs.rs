//! `site-admin runs`: what an administrator does with Runs, in the place of the control plane.

mod accept;
mod cancel;
pub mod document;
mod failure;
mod show;
mod submit;

use clap::{Args, Subcommand};
use execution_core::{Registry, RunId, WRITER_ROLE};

use crate::{
    Failure, commands::parser, contexts::RUNS_WRITER_URL, database::restricted_pool, output::Format,
};

#[derive(Subcommand)]
pub(crate) enum Runs {
    /// Accept a Run that a JSON document describes.
    ///
    /// The same Run again changes nothing. Another one of the same id is refused (65), and so is a
    /// document with anything wrong in it; every wrong field is named.
    Accept(accept::Accept),
    /// Submit the next Attempt of a Run.
    ///
    /// Attempts are numbered from 1. One that was submitted before is answered as `known`; any other
    /// number than the next one is refused (65), and so is an Attempt of a cancelled Run.
    Submit(submit::Submit),
    /// Cancel a Run, for ever: its Attempts may do nothing from now on.
    ///
    /// Cancelling again changes nothing, says so and exits with 0.
    Cancel(cancel::Cancel),
    /// Show a Run with its Attempts and its material.
    Show(show::Show),
}

#[derive(Args)]
struct RunArguments {
    /// The Run's id.
    #[arg(value_parser = parser(RunId::parse))]
    run_id: RunId,
}

pub(crate) async fn run(command: Runs, format: Format) -> Result<(), Failure> {
    let registry = Registry::new(restricted_pool(RUNS_WRITER_URL, WRITER_ROLE).await?);
    match command {
        Runs::Accept(arguments) => accept::run(&registry, arguments, format).await,
        Runs::Submit(arguments) => submit::run(&registry, arguments, format).await,
        Runs::Cancel(arguments) => cancel::run(&registry, arguments, format).await,
        Runs::Show(arguments) => show::run(&registry, arguments, format).await,
    }
}

fn unknown_run() -> Failure {
    Failure::absent("there is no such Run")
}
