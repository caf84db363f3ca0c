//! What happened in a lane: what everybody was told, and what the database holds in the end.
//!
//! A [`Recorder`] takes notes while the lane runs; its clones go to every task. [`Recorder::finish`]
//! gives the [`History`] that the checker judges. Nothing here judges.
//!
//! Every time is a [`Moment`] of the lane's own clock. A call is noted when it has its answer, or when
//! it is clear that none will come: `began` is from before its first byte left, `ended` from after its
//! answer was read. What happened lies between the two, so a rule holds wherever two of these spans
//! don't touch.

mod calls;
mod database;
mod linked;
mod processes;
mod recorder;

use std::{fmt, time::Duration};

use site_protocol::Digest;

pub(crate) use calls::{Call, CallAnswer, Item, Place, Way};
pub(crate) use database::{
    Cancel, CommandRow, Database, EventRow, OutputRow, ResultRow, SessionRow, StreamRows, VoidRow,
};
pub(crate) use linked::{
    Answer, OpenSession, OpenedSession, Page, PagedCommand, Poll, Refused, Request, SendResult,
    SendResults, StoreOutput, StoredOutput, StoredResult, Told, Writer,
};
pub(crate) use processes::{
    AgentLine, ExitNote, HandlerRun, JournalEntry, LogLine, ProcessRun, Program,
};
pub(crate) use recorder::Recorder;

/// A time since the lane's start, by the lane's monotonic clock.
pub(crate) type Moment = Duration;

/// A stream by its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamName {
    pub(crate) site: String,
    /// `k8s` or `slurm`.
    pub(crate) environment: String,
}

impl StreamName {
    pub(crate) fn new(site: &str, environment: &str) -> Self {
        Self { site: site.to_owned(), environment: environment.to_owned() }
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.site, self.environment)
    }
}

/// Everything that is known of a lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The wall clock at the moment zero, in microseconds since 1970: what the times in logs and in the
    /// database are told from.
    pub(crate) began_at_micros: i64,
    /// What producers asked for: one a try.
    pub(crate) calls: Vec<Call>,
    /// What linked Runtimes asked for: one a request.
    pub(crate) requests: Vec<Request>,
    /// Each start of a program, with its log and its end.
    pub(crate) processes: Vec<ProcessRun>,
    /// What the handler noted, by stream, in the order of its log.
    pub(crate) runs: Vec<(StreamName, Vec<HandlerRun>)>,
    /// What the agents' journals hold in the end.
    pub(crate) journals: Vec<(StreamName, Vec<JournalEntry>)>,
    /// The kinds of the faults that were scheduled, one for each.
    pub(crate) scheduled: Vec<&'static str>,
    /// Each fault that was brought about and met somebody.
    pub(crate) faults: Vec<Fault>,
    /// Each time that an older database came into the place of the newer one.
    pub(crate) restores: Vec<Restore>,
    /// How far the clock of PostgreSQL was off, from which moment on.
    pub(crate) database_clocks: Vec<DatabaseClock>,
    /// How the lane came to its end.
    pub(crate) end: LaneEnd,
    /// What the database holds in the end.
    pub(crate) database: Database,
}

/// A fault that was brought about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Its kind, in the words of the report, such as `agent SIGKILL`.
    pub(crate) kind: String,
    /// What it was done to, such as `lab-a listener 2`.
    pub(crate) target: String,
    pub(crate) began: Moment,
    /// When it was over: the same moment for a kill.
    pub(crate) ended: Moment,
}

impl Fault {
    /// Whether nobody may have reached the database meanwhile.
    pub(crate) fn kind_is_of_the_database(&self) -> bool {
        ["PostgreSQL", "backend", "backup", "older database"]
            .iter()
            .any(|word| self.kind.starts_with(word))
    }
}

/// An older database in the place of the newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Restore {
    /// Just before the server was stopped for the copy. What was told before this is in the copy.
    pub(crate) backup_began: Moment,
    /// Just before the server, which held the newer database, was stopped.
    pub(crate) restore_began: Moment,
    /// When the older database was in its place, before the server was started on it. What is told by
    /// a request that begins after this is of the restored history.
    pub(crate) restore_ended: Moment,
}

/// From `from` on, the clock of PostgreSQL stood `ahead_seconds` ahead of the lane's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatabaseClock {
    pub(crate) from: Moment,
    pub(crate) ahead_seconds: i64,
}

/// How the lane came to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneEnd {
    /// When the last fault was over.
    pub(crate) faults_stopped: Moment,
    /// When every command had its ending and every program answered; none where that never came.
    pub(crate) recovered: Option<Moment>,
    /// How long that may take.
    pub(crate) bound: Duration,
    /// What was still missing, where it never came.
    pub(crate) missing: Vec<String>,
}

/// How a command ended, as the wire and the database write it.
pub(crate) type Outcome = site_protocol::Outcome;

/// The digest of bytes, as everybody here computes it: SHA-256 by `ring` alone, so that the product's
/// own code is not asked whether it is right.
pub(crate) fn sha256(parts: &[&[u8]]) -> Digest {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        context.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    Digest::from_bytes(bytes)
}

/// An error with its causes, as it is noted.
pub(crate) fn text_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
