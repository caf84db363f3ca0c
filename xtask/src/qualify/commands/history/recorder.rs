//! Taking notes while a lane runs.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use super::{Call, DatabaseClock, Fault, History, LaneEnd, Moment, ProcessRun, Request, Restore};

/// Takes notes. Clones write to the same history, from any task or thread.
#[derive(Clone)]
pub(crate) struct Recorder {
    zero: Instant,
    history: Arc<Mutex<History>>,
}

impl Recorder {
    /// Begins at the moment zero, now.
    #[expect(clippy::disallowed_methods, reason = "what the times of logs are told from")]
    pub(crate) fn begin() -> Self {
        let zero = Instant::now();
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let micros = since_1970.map_or(0, |time| time.as_micros());
        let began_at_micros = i64::try_from(micros).unwrap_or(i64::MAX);
        let history = History { began_at_micros, ..History::default() };
        Self { zero, history: Arc::new(Mutex::new(history)) }
    }

    /// The moment now.
    pub(crate) fn now(&self) -> Moment {
        self.zero.elapsed()
    }

    /// When something was: the moment zero where that was before the start.
    pub(crate) fn moment_of(&self, instant: Instant) -> Moment {
        instant.saturating_duration_since(self.zero)
    }

    pub(crate) fn call(&self, call: Call) {
        self.with(|history| history.calls.push(call));
    }

    pub(crate) fn request(&self, request: Request) {
        self.with(|history| history.requests.push(request));
    }

    /// A program has ended, or the lane has.
    pub(crate) fn process(&self, run: ProcessRun) {
        self.with(|history| history.processes.push(run));
    }

    pub(crate) fn scheduled(&self, kinds: Vec<&'static str>) {
        self.with(|history| history.scheduled = kinds);
    }

    /// Notes a fault that met somebody.
    pub(crate) fn fault(&self, fault: Fault) {
        self.with(|history| history.faults.push(fault));
    }

    pub(crate) fn restore(&self, restore: Restore) {
        self.with(|history| history.restores.push(restore));
    }

    /// PostgreSQL was started with its clock so far ahead.
    pub(crate) fn database_clock(&self, ahead: Duration, behind: bool) {
        let from = self.now();
        let seconds = i64::try_from(ahead.as_secs()).unwrap_or(i64::MAX);
        let ahead_seconds = if behind { -seconds } else { seconds };
        self.with(|history| history.database_clocks.push(DatabaseClock { from, ahead_seconds }));
    }

    pub(crate) fn end(&self, end: LaneEnd) {
        self.with(|history| history.end = end);
    }

    /// Looks at what was noted so far, such as how many commands were acknowledged. Notes wait
    /// meanwhile.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut History) -> T) -> T {
        look(&mut self.lock())
    }

    /// Everything that was noted. Later notes are lost.
    pub(crate) fn finish(&self) -> History {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        // A task that panicked left whole notes.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
