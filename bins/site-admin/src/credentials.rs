//! `site-admin credentials`: native bearers and the grants file that lists them.

use chrono::{DateTime, Utc};
use clap::Subcommand;

use crate::Failure;

#[derive(Subcommand)]
pub(crate) enum Credentials {}

pub(crate) fn run(command: Credentials, _now: DateTime<Utc>) -> Result<(), Failure> {
    match command {}
}
