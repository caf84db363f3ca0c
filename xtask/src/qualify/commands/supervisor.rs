//! Keeps a program running as its supervisor would: systemd an agent, Kubernetes a listener.

use std::{
    io,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::process::Signal;
use test_support::{
    Faketime, Process,
    process::{Exit, Line, WaitError},
};
use tokio::{sync::watch, task::JoinHandle};

use super::history::{ExitNote, LogLine, Moment, ProcessRun, Program, Recorder};

/// Between an end and the next start. The unit of the agent waits longer; here is no time for that.
const PAUSE: Duration = Duration::from_millis(300);

/// How long a program may take to end that was asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(40);

/// A program that is started again whenever it ends.
pub(crate) struct Supervised {
    shared: Arc<Shared>,
}

struct Shared {
    program: Program,
    command: Box<dyn Fn() -> Command + Send + Sync>,
    recorder: Recorder,
    faketime: Option<Faketime>,
    state: Mutex<State>,
    stopping: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    process: Option<Arc<Process>>,
    /// Whether the end of this process is ours.
    ended_by_us: bool,
    /// How far ahead the clock of the next start is.
    clock_seconds: i64,
    /// None once it was stopped for good.
    task: Option<JoinHandle<io::Result<()>>>,
}

impl Supervised {
    /// Starts it. `command` makes the command of each start.
    pub(crate) fn start(
        program: Program,
        command: impl Fn() -> Command + Send + Sync + 'static,
        recorder: Recorder,
        faketime: Option<Faketime>,
    ) -> Self {
        let shared = Arc::new(Shared {
            program,
            command: Box::new(command),
            recorder,
            faketime,
            state: Mutex::default(),
            stopping: watch::Sender::new(false),
        });
        let task = tokio::spawn(supervise(Arc::clone(&shared)));
        shared.lock().task = Some(task);
        Self { shared }
    }

    pub(crate) fn program(&self) -> &Program {
        &self.shared.program
    }

    /// As people call it.
    pub(crate) fn name(&self) -> String {
        match &self.shared.program {
            Program::Agent(stream) => format!("{stream} agent"),
            Program::Listener { site, number } => format!("{site} listener {number}"),
        }
    }

    /// Whether it runs, or will again.
    pub(crate) fn is_kept_running(&self) -> bool {
        self.shared.lock().task.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// Whether a process of it is there now.
    pub(crate) fn runs(&self) -> bool {
        self.shared.lock().process.as_ref().is_some_and(|process| process.exit().is_none())
    }

    /// Kills it with SIGKILL, itself alone: what an agent has started goes on. False where it does not
    /// run.
    pub(crate) fn kill(&self) -> bool {
        self.end_by(Signal::KILL)
    }

    /// Has it end in good order, and gives the next start a clock that is so far ahead.
    pub(crate) fn restart_with_clock(&self, seconds: i64) {
        self.shared.lock().clock_seconds = seconds;
        self.end_by(Signal::TERM);
    }

    /// Stops it where it stands until `time` is over. False where it does not run.
    pub(crate) async fn pause(&self, time: impl Future<Output = ()>) -> bool {
        let process = self.shared.lock().process.clone();
        let Some(process) = process.filter(|process| process.exit().is_none()) else {
            return false;
        };
        process.signal(Signal::STOP);
        time.await;
        process.signal(Signal::CONT);
        true
    }

    /// Waits for a line of the process that runs.
    pub(crate) async fn wait_for_line(
        &self,
        text: &str,
        within: Duration,
    ) -> Result<(), WaitError> {
        let process = test_support::eventually(within, "the start of a program", async || {
            self.shared.lock().process.clone()
        });
        let process = process.await;
        process.wait_for_line(text, within, |line| line.contains(text)).await.map(drop)
    }

    /// Ends it in good order, for good.
    pub(crate) async fn stop(&self) -> io::Result<()> {
        let Some(task) = self.shared.lock().task.take() else { return Ok(()) };
        self.shared.stopping.send_replace(true);
        self.end_by(Signal::TERM);
        match tokio::time::timeout(ENDS_WITHIN, task).await {
            Ok(ended) => ended.map_err(io::Error::other)?,
            Err(_) => Err(io::Error::other(format!("the {} does not stop", self.name()))),
        }
    }

    fn end_by(&self, signal: Signal) -> bool {
        let mut state = self.shared.lock();
        let Some(process) = state.process.clone() else { return false };
        // One that has ended by itself already did so without us.
        let runs = process.exit().is_none();
        state.ended_by_us |= runs;
        process.signal(signal);
        runs
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> io::Result<(Arc<Process>, i64)> {
        let mut state = self.lock();
        let seconds = state.clock_seconds;
        let mut command = (self.command)();
        if let (Some(faketime), true) = (&self.faketime, seconds != 0) {
            command.envs(faketime.variables(seconds));
        }
        let process = Arc::new(Process::start(command)?);
        state.process = Some(Arc::clone(&process));
        state.ended_by_us = false;
        Ok((process, seconds))
    }

    fn note(&self, process: &Process, started: Moment, clock_ahead_seconds: i64, exit: Exit) {
        let by_the_lane = self.lock().ended_by_us;
        let line = |line: Line| LogLine { at: self.recorder.moment_of(line.at), text: line.text };
        let lines = process.lines().into_iter().map(line).collect();
        self.recorder.process(ProcessRun {
            program: self.program.clone(),
            started,
            clock_ahead_seconds,
            lines,
            exit: Some(ExitNote { at: self.recorder.now(), exit, by_the_lane }),
        });
    }

    /// Whether its supervisor starts it again, by deploy/systemd; Kubernetes always does.
    fn is_started_again_after(&self, exit: Exit) -> bool {
        match self.program {
            Program::Agent(_) => !matches!(exit, Exit::Code(64 | 65 | 76)),
            Program::Listener { .. } => true,
        }
    }
}

async fn supervise(shared: Arc<Shared>) -> io::Result<()> {
    let mut stopping = shared.stopping.subscribe();
    loop {
        let started = shared.recorder.now();
        let (process, seconds) = shared.start()?;
        // It was asked to stop between two processes.
        if *stopping.borrow() {
            shared.lock().ended_by_us = true;
            process.signal(Signal::TERM);
        }
        let exit = process.wait_exit(Duration::MAX).await.map_err(io::Error::other)?;
        shared.note(&process, started, seconds, exit);
        if seconds != 0 {
            Faketime::forget(process.pid());
        }
        if !shared.is_started_again_after(exit) {
            return Ok(());
        }
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop) => return Ok(()),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}
