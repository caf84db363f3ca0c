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
//! An output that is JSON is passed on with a failure or rejection too. What it writes into the file
//! that `SITE_AGENT_OUTPUT_FILE` names is a private output. Standard error goes to the log. Trouble of the agent's own (the program can't be started now) is no result.
//!
//! Nothing here knows the journal or the network.

mod answer;
mod group;
mod invocation;
mod leftover;
pub(crate) mod parsers;
mod pipes;
mod private_output;
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
use private_output::PrivateOutput;

pub(crate) use answer::Answer;
pub use invocation::invocation;
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
    /// The largest private output, in bytes.
    pub(crate) max_private_output: u64,
}

/// Why a running handler is to be ended, besides its timeout and the agent's own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// Its command was cancelled: what it still answers is the result.
    Cancelled,
    /// Nobody waits for its result any more.
    Abandoned,
}

/// How a try ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// With an answer.
    Answered(Answer),
    /// The agent is stopping; the handler was ended and there is no result.
    Interrupted,
    /// As for [`Interruption::Abandoned`]: the handler was ended and there is no result.
    Abandoned,
    /// It had its command, and then could not be observed: it may have done anything. Where it was
    /// not ended, its note is still there.
    Lost(io::Error),
}

impl Handler {
    /// Runs the handler once, with `input` on its standard input, unless `interruption` comes
    /// first. After an answer its note stays: [`Handler::forget`] it when the answer is on disk.
    ///
    /// # Errors
    ///
    /// When it could not be started, so that it never got its input: the agent's trouble, not the
    /// command's.
    pub(crate) async fn run(
        &self,
        input: Vec<u8>,
        stop: &mut Stop,
        interruption: impl Future<Output = Interruption>,
    ) -> io::Result<Ending> {
        let private_output = PrivateOutput::fresh(&self.state_folder, self.max_private_output)?;
        let (mut output, stdout) = Output::pipe()?;
        let mut child = self.spawn(stdout, &private_output)?;
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
            interruption = interruption => End::of(interruption),
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
        let ended = match &end {
            End::Exited(Ok(status)) => Ok(Some(*status)),
            End::Exited(Err(_)) => group.end(self.grace, stop.asked_now()).await.map(|()| None),
            End::TooLong | End::TimedOut | End::Interrupted | End::Abandoned => {
                group.end_with_leader(&mut child, self.grace, stop.asked_now()).await.map(Some)
            }
            End::Cancelled => {
                let ending = group.end_with_leader(&mut child, self.grace, stop.asked_now());
                let mut ending = std::pin::pin!(ending);
                // It may answer until it ends, and must not wait for somebody who reads.
                tokio::select! {
                    ended = &mut ending => ended.map(Some),
                    () = output.read_until_too_long() => ending.await.map(Some),
                }
            }
        };
        feeding.abort();
        let answer_of =
            |status, output: Output| private_output.add_to(answer::of_exit(status, output.rest()));
        Ok(match (end, ended) {
            (End::Exited(Ok(status)), _) => Ending::Answered(answer_of(status, output)),
            (End::Exited(Err(error)), ended) => Ending::Lost(ended.err().unwrap_or(error)),
            (End::Interrupted, ended) => {
                self.forget_if_ended(&ended);
                Ending::Interrupted
            }
            (End::Abandoned, ended) => {
                self.forget_if_ended(&ended);
                Ending::Abandoned
            }
            (End::TooLong | End::TimedOut | End::Cancelled, Err(error)) => Ending::Lost(error),
            (End::TooLong, Ok(_)) => Ending::Answered(answer::too_long()),
            (End::TimedOut, Ok(_)) => Ending::Answered(answer::timed_out(self.timeout)),
            (End::Cancelled, Ok(Some(status))) if answered(status) => {
                Ending::Answered(answer_of(status, output))
            }
            (End::Cancelled, Ok(_)) => Ending::Answered(Answer::failed("cancelled")),
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

    /// Where a handler without a result could not be ended, the next agent ends it by its note.
    fn forget_if_ended(&self, ended: &io::Result<Option<ExitStatus>>) {
        match ended {
            Ok(_) => self.forget(),
            Err(error) => tracing::error!(error = %error, "handler.not_ended"),
        }
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

    fn spawn(&self, stdout: Stdio, private_output: &PrivateOutput) -> io::Result<Child> {
        let seen = self.environment.iter().filter(|(name, _)| !is_hidden(name));
        Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(seen.map(|(name, value)| (name, value)))
            .env(private_output::VARIABLE, private_output.path())
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

/// Whether a handler that was told to end has answered before it did.
fn answered(status: ExitStatus) -> bool {
    status.signal().is_none() && !by_a_supervisor(status)
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
    Cancelled,
    Abandoned,
}

impl End {
    fn of(interruption: Interruption) -> Self {
        match interruption {
            Interruption::Cancelled => Self::Cancelled,
            Interruption::Abandoned => Self::Abandoned,
        }
    }
}

#[cfg(test)]
mod tests;
