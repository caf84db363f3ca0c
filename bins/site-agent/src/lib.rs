#![doc = include_str!("../README.md")]
//!
//! This file assembles: it reads arguments and settings, opens what the agent keeps and starts the
//! loop. What the agents do is in `runtime` and `ssh_keys`. It is a library so that tests can reach its parsers; nothing
//! else depends on it.

mod cli;
mod exit;
mod handler;
mod journal;
#[doc(hidden)]
pub mod parsers;
mod runtime;
mod settings;
mod ssh_keys;
mod state_folder;
mod stop;
mod verdict;

use std::{error::Error, ffi::OsString, process::ExitCode, time::Duration};

use chrono::{DateTime, Utc};
use clap::Parser;
use service_kit::{Settings, error_chain, start_logs};
use site_client::{SiteClient, Timeouts, system_random};
use tokio::signal::unix::{SignalKind, signal};

use cli::{Cli, Role, RuntimeArgs, SshKeysArgs};
use exit::Exit;
use handler::{Handler, find_program};
use journal::{Journal, JournalError, Keep};
use runtime::{Polling, Runtime};
use settings::Connection;
use ssh_keys::{Folder, FolderError, Pace, SshKeys, StateError, StateFile};
use stop::Stop;

/// Which lines are logged.
const LOG: &str = "SITE_AGENT_LOG";

/// How long a handler has after SIGTERM before SIGKILL.
const HANDLER_GRACE: Duration = Duration::from_secs(5);

const MIB: u64 = 1024 * 1024;

type Environment = Vec<(OsString, OsString)>;

/// The whole program: from its arguments to its exit code.
pub async fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => {
            let exit = if answer.use_stderr() { Exit::Settings } else { Exit::Stopped };
            return if answer.print().is_ok() { exit } else { Exit::Internal }.into();
        }
    };
    #[expect(clippy::disallowed_methods, reason = "the handler inherits the environment")]
    let environment = std::env::vars_os().collect();
    match cli.role {
        Role::Runtime(arguments) => run_runtime(arguments, environment).await.into(),
        Role::SshKeys(arguments) => run_ssh_keys(arguments, environment).await.into(),
    }
}

async fn run_runtime(arguments: RuntimeArgs, environment: Environment) -> Exit {
    let mut settings = Settings::from_pairs(environment.clone());
    if let Err(error) = start_logs(&mut settings, LOG) {
        return failed(Exit::Internal, &error);
    }
    let connection = Connection::read(&mut settings, "SITE_API_URL").await;
    let handler = handler(&mut settings, &arguments, environment);
    let (connection, handler) = match accept(settings, connection.zip(handler)) {
        Ok(accepted) => accepted,
        Err(exit) => return exit,
    };
    let keep = Keep {
        results: usize::try_from(arguments.keep_results).unwrap_or(usize::MAX),
        result_bytes: u64::from(arguments.keep_mib) * MIB,
        output_bytes: u64::from(arguments.keep_outputs_mib) * MIB,
    };
    let journal = match Journal::open(&arguments.state, &connection.origin, keep) {
        Ok(journal) => journal,
        Err(error @ JournalError::InUse(_)) => return failed(Exit::StateInUse, &error),
        Err(error @ JournalError::OtherOrigin { .. }) => return failed(Exit::Settings, &error),
        Err(error) => return failed(Exit::Internal, &error),
    };
    // A supervisor may have left SIGCHLD ignored: then no handler's end could be observed.
    if let Err(error) = signal(SignalKind::child()) {
        return failed(Exit::Internal, &error);
    }
    let stop = match Stop::on_signals() {
        Ok(stop) => stop,
        Err(error) => return failed(Exit::Internal, &error),
    };
    let Connection { origin, roots, token } = connection;
    tracing::info!(site_api.origin = origin.as_str(), "agent.starting");
    let client = SiteClient::new(origin, roots, token, Timeouts::default());
    let wait = Duration::from_secs(arguments.wait.into());
    let polling = Polling { limit: arguments.limit, wait };
    Runtime::new(client, journal, handler, polling, now, system_random(), stop).run().await
}

async fn run_ssh_keys(arguments: SshKeysArgs, environment: Environment) -> Exit {
    let mut settings = Settings::from_pairs(environment);
    if let Err(error) = start_logs(&mut settings, LOG) {
        return failed(Exit::Internal, &error);
    }
    let connection = Connection::read(&mut settings, "SSH_ACCESS_SITE_API_URL").await;
    let connection = match accept(settings, connection) {
        Ok(accepted) => accepted,
        Err(exit) => return exit,
    };
    let owner = rustix::process::geteuid().as_raw();
    let folder = match Folder::open(&arguments.folder, owner, system_random()) {
        Ok(folder) => folder,
        Err(error @ FolderError::InUse(_)) => return failed(Exit::StateInUse, &error),
        Err(error @ FolderError::Io { .. }) => return failed(Exit::Internal, &error),
        Err(error) => return failed(Exit::Settings, &error),
    };
    let (state, position) = match StateFile::open(&arguments.state, &connection.origin) {
        Ok(opened) => opened,
        Err(error @ StateError::InUse(_)) => return failed(Exit::StateInUse, &error),
        Err(error @ StateError::OtherOrigin { .. }) => return failed(Exit::Settings, &error),
        Err(error) => return failed(Exit::Internal, &error),
    };
    let stop = match Stop::on_signals() {
        Ok(stop) => stop,
        Err(error) => return failed(Exit::Internal, &error),
    };
    let Connection { origin, roots, token } = connection;
    tracing::info!(site_api.origin = origin.as_str(), "agent.starting");
    let client = SiteClient::new(origin, roots, token, Timeouts::default());
    let pace = Pace {
        limit: arguments.limit,
        wait: Duration::from_secs(arguments.wait.into()),
        attest_every: Duration::from_secs(arguments.attest_every.into()),
    };
    SshKeys::new(client, folder, state, pace, system_random(), stop).run(position).await
}

/// What was read, or the end after every mistake was told.
fn accept<T>(settings: Settings, read: Option<T>) -> Result<T, Exit> {
    settings.accept(read).map_err(|mistakes| {
        for mistake in mistakes.mistakes() {
            tracing::error!(setting.name = mistake.name, error = mistake.reason, "setting.wrong");
        }
        Exit::Settings
    })
}

fn handler(
    settings: &mut Settings,
    arguments: &RuntimeArgs,
    environment: Environment,
) -> Option<Handler> {
    let (name, first_arguments) = arguments.handler.split_first()?;
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
    let program = find_program(name, path.map(OsString::as_os_str))
        .map_err(|error| settings.mistake("--handler", error.to_string()))
        .ok()?;
    Some(Handler {
        program,
        arguments: [first_arguments, &arguments.more_arguments].concat(),
        environment,
        timeout: Duration::from_secs(arguments.handler_timeout.into()),
        grace: HANDLER_GRACE,
        state_folder: arguments.state.clone(),
        max_private_output: u64::from(arguments.max_output_mib) * MIB,
    })
}

fn failed(exit: Exit, error: &dyn Error) -> Exit {
    tracing::error!(error = error_chain(error), "agent.failed");
    exit
}

#[expect(clippy::disallowed_methods, reason = "the one place that gives the agent its clock")]
fn now() -> DateTime<Utc> {
    Utc::now()
}
