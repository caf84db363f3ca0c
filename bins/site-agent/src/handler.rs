//! Running the handler: the program of a Site that does what a command asks for.
//!
//! `docs/HANDLER.md` is the contract, for whoever writes one.
//!
//! The program is run directly, without a shell, in a process group of its own. It gets the
//! command as a JSON object, one line, on its standard input and answers on its standard output:
//!
//! | The handler | The result |
//! |---|---|
//! | exits with 0, its output is empty or one JSON value | `succeeded`, with that output |
//! | exits with 65 | `rejected`: it will never be able to execute this command |
//! | exits otherwise, is killed, takes too long, or answers something else | `failed` |
//!
//! Input without its line break means that the agent was killed just then: there is no command,
//! and a handler does nothing. It may be run again for a command whose result did not reach the
//! disk; `try` in the object counts.
//!
//! An output that is JSON is passed on with a failure or rejection too. Standard error goes to the
//! log. Trouble of the agent's own (the program can't be started now) is no result.
//!
//! Nothing here knows the journal or the network.

mod answer;
mod group;
mod invocation;
mod leftover;
mod pipes;
mod program;

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::process::{Child, Command};

use crate::stop::Stop;

use group::Group;
use leftover::Leftover;
use pipes::Output;

pub(crate) use invocation::invocation;
pub(crate) use program::find_program;

/// Variables of the agent's own that the handler does not see: they lead to its token.
const HIDDEN_PREFIX: &str = "SITE_API_";

/// How to run the handler.
#[derive(Debug)]
pub(crate) struct Handler {
    /// The program, see [`find_program`].
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// The agent's environment; what leads to its token is left out for the handler.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// How long a try may take.
    pub(crate) timeout: Duration,
    /// How long a handler has after SIGTERM before SIGKILL.
    pub(crate) grace: Duration,
    /// The agent's state folder, where a running handler is noted.
    pub(crate) state_folder: PathBuf,
}

/// How a try ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// With a result, as its exact text.
    Answered(String),
    /// The agent is stopping; the handler was ended and there is no result.
    Interrupted,
}

impl Handler {
    /// Runs the handler once, with `input` on its standard input.
    ///
    /// # Errors
    ///
    /// When it could not be started or watched: the agent's trouble, not the command's.
    pub(crate) async fn run(&self, input: Vec<u8>, stop: &mut Stop) -> io::Result<Ending> {
        let (mut output, stdout) = Output::pipe()?;
        let mut child = self.spawn(stdout)?;
        let group = Group::of(&child)?;
        let leftover = Leftover::in_folder(&self.state_folder);
        if let Err(error) = leftover.note(group) {
            group.end(&mut child, Duration::ZERO, stop).await;
            return Err(error);
        }
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let feeding = tokio::spawn(pipes::feed(stdin, input));
        tokio::spawn(pipes::log(stderr));
        let deadline = tokio::time::sleep(self.timeout);
        let end = tokio::select! {
            status = child.wait() => End::Exited(status),
            () = output.read_until_too_long() => End::TooLong,
            () = deadline => End::TimedOut,
            () = stop.asked() => End::Interrupted,
        };
        if !matches!(end, End::Exited(Ok(_))) {
            group.end(&mut child, self.grace, stop).await;
        }
        feeding.abort();
        leftover.forget();
        Ok(Ending::Answered(match end {
            End::Exited(status) => answer::of_exit(status?, output.rest()),
            End::TooLong => answer::too_long(),
            End::TimedOut => answer::timed_out(self.timeout),
            End::Interrupted => return Ok(Ending::Interrupted),
        }))
    }

    /// Ends a handler that an agent which was killed has left behind, so that no command is
    /// worked on twice at the same time.
    pub(crate) async fn end_leftover(&self) -> io::Result<()> {
        Leftover::in_folder(&self.state_folder).end(self.grace).await
    }

    fn spawn(&self, stdout: Stdio) -> io::Result<Child> {
        let seen = self
            .environment
            .iter()
            .filter(|(name, _)| !name.as_encoded_bytes().starts_with(HIDDEN_PREFIX.as_bytes()));
        Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(seen.map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }
}

enum End {
    Exited(io::Result<ExitStatus>),
    TooLong,
    TimedOut,
    Interrupted,
}

#[cfg(test)]
mod tests;
