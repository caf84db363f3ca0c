//! `site-admin beto`: a responder for development and tests.

pub(crate) mod policy;
mod respond;

use clap::Subcommand;

use crate::{Failure, output::Format};

#[derive(Subcommand)]
pub(crate) enum Beto {
    /// Answer the questions of Site Control by a policy file, until it is stopped. For development
    /// and tests only: it knows no members and no projects, only what the file says.
    ///
    /// The URL of the responder's user is in BETO_RESPONDER_BROKER_URL, and what vouches for the
    /// broker in the file that BETO_RESPONDER_BROKER_CA_FILE names. Prints a line for each question
    /// that it has answered. The file is read again for each question; while it is wrong, nothing is
    /// answered.
    Respond(respond::Respond),
}

pub(crate) async fn run(command: Beto, format: Format) -> Result<(), Failure> {
    match command {
        Beto::Respond(arguments) => respond::run(arguments, format).await,
    }
}
