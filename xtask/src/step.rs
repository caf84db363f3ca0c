//! One command of a longer run: shown, run, and stopped in good order when the user asks.

use std::{ffi::OsStr, io, path::Path, process::Command, time::Duration};

use rustix::process::Signal;
use test_support::process::{self, Exit, LastSignal, Process, WaitError};

use crate::stop::{Stop, Stopped};

/// nextest gives its tests ten seconds when it is asked to end.
const TIDY_UP_WITHIN: Duration = Duration::from_secs(30);

/// Why a step didn't succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error("starting `{0}`")]
    Start(String, #[source] io::Error),
    #[error("`{0}` failed ({1})")]
    Failed(String, Exit),
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// A command at the root of the repository.
pub(crate) fn command<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: &[S]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    process::forget_cargo(&mut command);
    command
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask stands in the repository")
}

/// Shows a command and runs it with its output on our own.
pub(crate) async fn run(stop: &Stop, command: Command) -> Result<(), StepError> {
    let shown = shown(&command);
    eprintln!("\n== {shown}");
    let started = Process::start_printing(command, LastSignal::Terminate);
    wait(stop, &started.map_err(|error| StepError::Start(shown.clone(), error))?, shown).await
}

/// Runs a command and returns what it printed on standard output; its whole output is shown when it
/// fails.
pub(crate) async fn read(stop: &Stop, command: Command) -> Result<Vec<String>, StepError> {
    let shown = shown(&command);
    let started = Process::start_ending_by(command, LastSignal::Terminate);
    let process = started.map_err(|error| StepError::Start(shown.clone(), error))?;
    let result = wait(stop, &process, shown).await;
    let lines = process.lines();
    if matches!(result, Err(StepError::Failed(..))) {
        lines.iter().for_each(|line| eprintln!("{}", line.text));
    }
    let printed =
        lines.into_iter().filter(|line| line.stream == test_support::process::Stream::Out);
    result.map(|()| printed.map(|line| line.text).collect())
}

async fn wait(stop: &Stop, process: &Process, shown: String) -> Result<(), StepError> {
    let exit = tokio::select! {
        exit = process.wait_exit(Duration::MAX) => exit?,
        () = stop.requested() => {
            process.signal(Signal::TERM);
            process.wait_exit(TIDY_UP_WITHIN).await?;
            return Err(Stopped.into());
        }
    };
    if exit == Exit::Code(0) { Ok(()) } else { Err(StepError::Failed(shown, exit)) }
}

fn shown(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        command("sh", &["-c", script])
    }

    #[tokio::test]
    async fn a_step_that_fails_is_told_with_its_exit() {
        let (_sender, stop) = Stop::channel();
        run(&stop, shell("exit 0")).await.unwrap();
        let error = run(&stop, shell("exit 3")).await.unwrap_err().to_string();
        assert_eq!(error, "`sh -c exit 3` failed (exit code 3)");
    }

    #[tokio::test]
    async fn what_is_read_is_standard_output_alone() {
        let (_sender, stop) = Stop::channel();
        let read = read(&stop, shell("echo out; echo err >&2; echo more")).await.unwrap();
        assert_eq!(read, ["out", "more"]);
    }

    #[tokio::test]
    async fn a_stop_lets_the_step_tidy_up() {
        let folder = tempfile::tempdir().unwrap();
        let (ready, tidied) = (folder.path().join("ready"), folder.path().join("tidied"));
        let script = format!(
            "trap 'echo > {}; exit 0' TERM; echo > {}; while :; do sleep 0.05; done",
            tidied.display(),
            ready.display()
        );
        let (sender, stop) = Stop::channel();
        let asks = async {
            let within = Duration::from_secs(60);
            test_support::eventually(within, "the step", async || ready.exists().then_some(()))
                .await;
            sender.send_replace(true);
        };
        let (result, ()) = tokio::join!(run(&stop, shell(&script)), asks);
        assert!(matches!(result, Err(StepError::Stopped(_))), "{result:?}");
        assert!(tidied.exists());
    }

    #[tokio::test]
    async fn nothing_that_cargo_says_of_us_reaches_a_step() {
        // Under `cargo test` and nextest these are set, as under `cargo run`.
        #[expect(clippy::disallowed_methods, reason = "that cargo tells this test about itself")]
        let mut variables = std::env::vars_os();
        assert!(variables.any(|(name, _)| name == "CARGO_PKG_NAME"));
        let (_sender, stop) = Stop::channel();
        let variables = read(&stop, command::<&str>("env", &[])).await.unwrap();
        let of_us =
            |line: &&String| line.starts_with("CARGO_PKG_") || line.starts_with("CARGO_MANIFEST_");
        assert_eq!(variables.iter().filter(of_us).count(), 0);
    }
}
