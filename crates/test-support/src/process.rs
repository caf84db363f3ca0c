//! Child processes that a test can watch, and that never outlive it.
//!
//! A child runs in a process group of its own, its output is kept whole, and it is killed when the
//! value is dropped and, where `setpriv` is installed, when the test process itself dies.

mod output;
mod spawner;

use std::{
    env, io,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use output::Shared;

pub use output::{Exit, Line, Stream};

/// A running child.
pub struct Process {
    name: String,
    pid: Pid,
    shared: Arc<Shared>,
}

/// What a child receives when this process dies without having ended it.
#[derive(Clone, Copy, Debug)]
pub enum LastSignal {
    /// SIGKILL.
    Kill,
    /// SIGINT, for a program that needs a moment to tidy up.
    Interrupt,
    /// SIGTERM, likewise.
    Terminate,
}

/// Why a wait for a process ended without what it waited for.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// It exited first.
    #[error("{name} ended ({exit}) before {what}; its last lines:\n{tail}")]
    Ended {
        /// The program.
        name: String,
        /// How it ended.
        exit: Exit,
        /// What was waited for.
        what: String,
        /// Its last lines.
        tail: String,
    },
    /// The time was over.
    #[error("waited {within:?} for {name}: {what}; its last lines:\n{tail}")]
    TimedOut {
        /// The program.
        name: String,
        /// How long the wait was.
        within: Duration,
        /// What was waited for.
        what: String,
        /// Its last lines.
        tail: String,
    },
}

impl Process {
    /// Starts a child with no standard input and captured output. It is killed when this process
    /// dies.
    ///
    /// Its environment is ours and what the command sets or removes; `env_clear` has no effect.
    ///
    /// # Errors
    ///
    /// When the program can't be started.
    pub fn start(command: Command) -> io::Result<Self> {
        Self::start_ending_by(command, LastSignal::Kill)
    }

    /// Like [`Process::start`], for a program that wants another signal than KILL when this process
    /// dies.
    ///
    /// # Errors
    ///
    /// When the program can't be started.
    pub fn start_ending_by(command: Command, at_our_death: LastSignal) -> io::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut command = spawner::dying_with_us(command, at_our_death);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::spawn(name, command)
    }

    /// Starts a child that prints where we print, and of which nothing is kept.
    ///
    /// # Errors
    ///
    /// When the program can't be started.
    pub fn start_printing(command: Command, at_our_death: LastSignal) -> io::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        Self::spawn(name, spawner::dying_with_us(command, at_our_death))
    }

    fn spawn(name: String, mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::null()).process_group(0);
        let mut child = spawner::spawn(command)?;
        let pid = Pid::from_child(&child);
        let shared = Arc::new(Shared::new());
        if let Some(stdout) = child.stdout.take() {
            output::read_lines(stdout, Stream::Out, &shared);
        }
        if let Some(stderr) = child.stderr.take() {
            output::read_lines(stderr, Stream::Err, &shared);
        }
        watch_exit(pid, &shared);
        Ok(Self { name, pid, shared })
    }

    /// The process's id, which is also its group's.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Every line so far, of both streams in the order of their arrival.
    pub fn lines(&self) -> Vec<Line> {
        self.shared.with(|state| state.lines.clone())
    }

    /// Waits for a line that satisfies `predicate`, those already printed included, and returns it.
    ///
    /// # Errors
    ///
    /// When the process ends or `within` is over first.
    pub async fn wait_for_line(
        &self,
        what: &str,
        within: Duration,
        mut predicate: impl FnMut(&str) -> bool,
    ) -> Result<String, WaitError> {
        let mut seen = 0;
        self.wait(what, within, |state| {
            let found = state.lines[seen..].iter().find(|line| predicate(&line.text));
            let found = found.map(|line| line.text.clone());
            seen = state.lines.len();
            found
        })
        .await
    }

    /// Waits for the end of the process and of its output.
    ///
    /// # Errors
    ///
    /// When `within` is over first.
    pub async fn wait_exit(&self, within: Duration) -> Result<Exit, WaitError> {
        self.wait("its end", within, |state| if state.closed() { state.exit } else { None }).await
    }

    /// How it ended; none while it runs.
    pub fn exit(&self) -> Option<Exit> {
        self.shared.with(|state| state.exit)
    }

    /// Sends a signal to the process alone. A process that has ended ignores it.
    pub fn signal(&self, signal: Signal) {
        // It stays a zombie until this value is dropped, so that the id can't be another's.
        let _ = kill_process(self.pid, signal);
    }

    /// Kills its process group with SIGKILL and waits for the end of the process.
    pub fn kill(&self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.shared.wait_exit_blocking(Duration::MAX);
    }

    /// Waits for the end without an async runtime; false when `within` is over first.
    pub(crate) fn wait_exit_blocking(&self, within: Duration) -> bool {
        self.shared.wait_exit_blocking(within)
    }

    async fn wait<T>(
        &self,
        what: &str,
        within: Duration,
        mut look: impl FnMut(&output::State) -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut changes = self.shared.changes();
        let waited = tokio::time::timeout(within, async {
            loop {
                changes.mark_unchanged();
                let (found, ended) =
                    self.shared.with(|state| (look(state), state.exit.filter(|_| state.closed())));
                if let Some(found) = found {
                    return Ok(found);
                }
                if let Some(exit) = ended {
                    return Err(exit);
                }
                changes.changed().await.expect("the sender lives in self");
            }
        });
        let (name, what) = (self.name.clone(), what.to_owned());
        match waited.await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(exit)) => Err(WaitError::Ended { name, exit, what, tail: self.tail() }),
            Err(_) => Err(WaitError::TimedOut { name, within, what, tail: self.tail() }),
        }
    }

    /// The last forty lines, as an error message shows them.
    pub fn tail(&self) -> String {
        self.shared.with(|state| {
            let from = state.lines.len().saturating_sub(40);
            let lines: Vec<_> = state.lines[from..].iter().map(|l| l.text.as_str()).collect();
            lines.join("\n")
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let _ = waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED);
    }
}

/// Takes from a command what cargo tells us about ourselves, so that it runs as from a shell. A
/// cargo that it starts would else pass that on to the build script of ring, which takes it for a
/// change, and everything above ring would be built again.
#[expect(clippy::disallowed_methods, reason = "the names of variables that a child inherits")]
pub fn forget_cargo(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
}

/// A TCP port of 127.0.0.1 that nobody listened on a moment ago. Another process may take it first:
/// a caller that can pass port 0 on does that instead.
///
/// # Errors
///
/// When the machine has no free port.
pub fn free_port() -> io::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Whether a process is there and no zombie.
pub(crate) fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

/// The path of one of the workspace's binaries, beside the running test or `xtask`.
///
/// # Panics
///
/// When it was not built, naming the command that builds it.
pub fn bin(name: &str) -> PathBuf {
    let path = profile_folder().join(name);
    assert!(
        path.is_file(),
        "{} is not there: run `cargo build --workspace --bins` (`cargo xtask test` does)",
        path.display()
    );
    path
}

/// The folder in cargo's target folder that the running test or `xtask` was built into.
pub(crate) fn profile_folder() -> PathBuf {
    let ours = env::current_exe().expect("a running program has a path");
    let folder = ours.parent().expect("a program stands in a folder");
    let profile = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    profile.to_owned()
}

/// Records the exit without reaping the process: its id must stay its own until the value is
/// dropped.
fn watch_exit(pid: Pid, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let exit = loop {
            match waitid(WaitId::Pid(pid), options) {
                Ok(Some(status)) => {
                    break status.exit_status().map_or_else(
                        || Exit::Signal(status.terminating_signal().unwrap_or_default()),
                        Exit::Code,
                    );
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => unreachable!("waiting for our own child {pid:?}: {error}"),
            }
        };
        shared.change(|state| state.exit = Some(exit));
    });
}
