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
mod stat;

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use tokio::process::{Child, Command};

use crate::stop::Stop;

use group::Group;
use leftover::Leftover;
use pipes::Output;

pub(crate) use invocation::invocation;
pub(crate) use program::find_program;

/// How the names of our own variables begin. The handler does not see them: they lead to secrets.
const HIDDEN_PREFIXES: [&[u8]; 6] = [
    b"MEMBER_CREDENTIALS_",
    b"SITE_API_",
    b"SITE_CONTROL_",
    b"SITE_COORDINATION_",
    b"SOURCE_CONTROL_",
    b"SSH_ACCESS_",
];
/// What the name of a variable with a database's password holds, whoever it is for.
const HIDDEN_WORD: &[u8] = b"_DATABASE_URL";

/// How long the signal of a supervisor that ends the agent may come after the same signal has ended
/// the handler.
const MOMENT: Duration = Duration::from_secs(1);

/// How to run the handler.
#[derive(Debug)]
pub(crate) struct Handler {
    /// The program, see [`find_program`].
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// The agent's environment; what leads to secrets of our own is left out for the handler.
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
    /// It had its command, and then could not be observed: it may have done anything. Where it was
    /// not ended, its note is still there.
    Lost(io::Error),
}

impl Handler {
    /// Runs the handler once, with `input` on its standard input. After an answer its note stays:
    /// [`Handler::forget`] it when the answer is on disk.
    ///
    /// # Errors
    ///
    /// When it could not be started, so that it never got its input: the agent's trouble, not the
    /// command's.
    pub(crate) async fn run(&self, input: Vec<u8>, stop: &mut Stop) -> io::Result<Ending> {
        let (mut output, stdout) = Output::pipe()?;
        let mut child = self.spawn(stdout)?;
        let group = self.note(&mut child).await?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let feeding = tokio::spawn(pipes::feed(stdin, input));
        tokio::spawn(pipes::log(stderr));
        let deadline = tokio::time::sleep(self.timeout);
        let end = tokio::select! {
            biased;
            () = stop.asked() => End::Interrupted,
            status = child.wait() => End::Exited(status),
            () = output.read_until_too_long() => End::TooLong,
            () = deadline => End::TimedOut,
        };
        let end = match end {
            End::Exited(Ok(status))
                if by_a_supervisor(status) && stop.asked_within(MOMENT).await =>
            {
                End::Interrupted
            }
            end => end,
        };
        // Only afterwards is the leader waited for: until then nobody else gets its number.
        let ended = match end {
            End::Exited(Ok(_)) => Ok(()),
            End::Exited(Err(_)) => group.end(self.grace, stop.asked_now()).await,
            End::TooLong | End::TimedOut | End::Interrupted => {
                group.end_with_leader(&mut child, self.grace, stop.asked_now()).await
            }
        };
        feeding.abort();
        Ok(match (end, ended) {
            (End::Exited(Ok(status)), _) => {
                Ending::Answered(answer::of_exit(status, output.rest()))
            }
            (End::Exited(Err(error)), ended) => Ending::Lost(ended.err().unwrap_or(error)),
            (End::Interrupted, Ok(())) => {
                self.forget();
                Ending::Interrupted
            }
            // The next agent ends it.
            (End::Interrupted, Err(error)) => {
                tracing::error!(error = %error, "handler.not_ended");
                Ending::Interrupted
            }
            (End::TooLong | End::TimedOut, Err(error)) => Ending::Lost(error),
            (End::TooLong, Ok(())) => Ending::Answered(answer::too_long()),
            (End::TimedOut, Ok(())) => Ending::Answered(answer::timed_out(self.timeout)),
        })
    }

    /// Ends what is left of the noted handler, so that no command is worked on twice at the same
    /// time.
    pub(crate) async fn end_leftover(&self) -> io::Result<()> {
        Leftover::in_folder(&self.state_folder).end(self.grace).await
    }

    /// Removes the note of a handler whose answer is on disk. What it left in the background is not
    /// ours to end.
    pub(crate) fn forget(&self) {
        Leftover::in_folder(&self.state_folder).forget();
    }

    /// Notes the handler, or ends it: it has no command yet.
    async fn note(&self, child: &mut Child) -> io::Result<Group> {
        let error = match Group::of(child) {
            Ok(group) => match Leftover::in_folder(&self.state_folder).note(&group) {
                Ok(()) => return Ok(group),
                Err(error) => {
                    group.send(Signal::KILL);
                    error
                }
            },
            Err(error) => error,
        };
        child.kill().await?;
        Err(error)
    }

    fn spawn(&self, stdout: Stdio) -> io::Result<Child> {
        let seen = self.environment.iter().filter(|(name, _)| !is_hidden(name));
        Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(seen.map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }
}

/// Whether a handler ended as one does that is told to stop by signal.
fn by_a_supervisor(status: ExitStatus) -> bool {
    let signals = [Signal::TERM, Signal::INT].map(Signal::as_raw);
    let number = status.signal().or_else(|| status.code().map(|code| code - 128));
    number.is_some_and(|number| signals.contains(&number))
}

fn is_hidden(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    HIDDEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.windows(HIDDEN_WORD.len()).any(|word| word == HIDDEN_WORD)
}

enum End {
    Exited(io::Result<ExitStatus>),
    TooLong,
    TimedOut,
    Interrupted,
}

#[cfg(test)]
mod tests;
