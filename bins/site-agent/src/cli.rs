//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{ArgAction, Args, Parser, Subcommand};

/// The reference agent of a Site: the programs of a Site that speak the Site API.
///
/// The Site API is named by SITE_API_URL (`https://host[:port]`), for `ssh-keys` by
/// SSH_ACCESS_SITE_API_URL, the certificates that vouch for it by SITE_API_CA_FILE, and the bearer
/// token is read from SITE_API_TOKEN_FILE, again for each request.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    /// Which agent to be.
    #[command(subcommand)]
    pub(crate) role: Role,
}

/// The agents.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Pull the Site's commands in order, run a handler for each, and return its result.
    Runtime(RuntimeArgs),
    /// Pull the changes of the members' keys and keep the files that sshd reads.
    SshKeys(SshKeysArgs),
}

/// Arguments of `ssh-keys`.
#[derive(Debug, Args)]
pub(crate) struct SshKeysArgs {
    /// The folder of the files, as in `AuthorizedKeysFile <folder>/%u`. It must be there, belong to
    /// the user that runs the agent, and be writable by nobody else.
    #[arg(long, value_name = "DIR", default_value = "/etc/ssh/site-agent")]
    pub(crate) folder: PathBuf,
    /// The folder that keeps the agent's place. One agent at a time; it is made when it is missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// The most changes in one answer of the Site API.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
    /// How long the Site API may wait for a change. The agent never waits for longer than a quarter
    /// of the window.
    #[arg(long, value_name = "SECONDS", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=25))]
    pub(crate) wait: u32,
    /// How often the files are read back and compared with what is in force.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) attest_every: u32,
}

/// Arguments of `runtime`.
#[derive(Debug, Args)]
pub(crate) struct RuntimeArgs {
    /// The program that is run for each command, and its arguments. Arguments that begin with a
    /// hyphen stand at the end of the line, after `--`.
    ///
    /// It is run without a shell, gets the command as JSON on standard input and answers with
    /// JSON, or nothing, on standard output. Exit 0: succeeded; 65: rejected; else: failed.
    #[arg(long, action = ArgAction::Set, num_args = 1.., required = true, value_names = ["PROGRAM", "ARGS"])]
    pub(crate) handler: Vec<OsString>,
    /// The folder that keeps the journal. One agent at a time; it is made when it is missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// How long the handler may take for one command.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) handler_timeout: u32,
    /// The most commands in one answer of the Site API.
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) limit: u32,
    /// How long the Site API may wait for a command.
    #[arg(long, value_name = "SECONDS", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=25))]
    pub(crate) wait: u32,
    /// The largest private output of a handler.
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) max_output_mib: u32,
    /// How many results the journal keeps after their receipts, for after a restored database.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) keep_results: u32,
    /// How much room they may take, on disk and in memory.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) keep_mib: u32,
    /// How much room their private outputs may take on disk.
    #[arg(long, value_name = "MIB", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub(crate) keep_outputs_mib: u32,
    /// More arguments of the handler.
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) more_arguments: Vec<OsString>,
}
