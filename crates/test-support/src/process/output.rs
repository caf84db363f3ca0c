//! What a child has printed and how it ended, shared by the threads that watch it.

use std::{
    fmt,
    io::{BufRead, BufReader, Read},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::watch;

/// Where a line was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One printed line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Where.
    pub stream: Stream,
    /// Its text without the line end; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// When it came, by a clock that no fault of a test touches.
    pub at: Instant,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) lines: Vec<Line>,
    pub(super) exit: Option<Exit>,
    open_streams: usize,
}

impl State {
    /// Whether nothing more can be printed.
    pub(super) fn closed(&self) -> bool {
        self.open_streams == 0
    }
}

pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    changes: watch::Sender<()>,
}

impl Shared {
    pub(super) fn new() -> Self {
        let changes = watch::Sender::new(());
        Self { state: Mutex::default(), changed: Condvar::new(), changes }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
        self.changes.send_replace(());
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) fn wait_exit_blocking(&self, within: Duration) -> bool {
        let running = |state: &mut State| state.exit.is_none();
        let guard = self.lock();
        if within == Duration::MAX {
            let waited = self.changed.wait_while(guard, running);
            return waited.unwrap_or_else(PoisonError::into_inner).exit.is_some();
        }
        let waited = self.changed.wait_timeout_while(guard, within, running);
        waited.unwrap_or_else(PoisonError::into_inner).0.exit.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects the lines of one stream on a thread of its own, so that the child never blocks on a
/// full pipe.
pub(super) fn read_lines(from: impl Read + Send + 'static, stream: Stream, shared: &Arc<Shared>) {
    shared.change(|state| state.open_streams += 1);
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let mut reader = BufReader::new(from);
        let mut bytes = Vec::new();
        while matches!(reader.read_until(b'\n', &mut bytes), Ok(1..)) {
            let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
            let line = Line { stream, text, at: Instant::now() };
            shared.change(|state| state.lines.push(line));
            bytes.clear();
        }
        shared.change(|state| state.open_streams -= 1);
    });
}
