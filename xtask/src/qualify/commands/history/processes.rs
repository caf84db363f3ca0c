//! What programs wrote down: their logs, the handler's notes, the agents' journals, and how they ended.

use site_protocol::Digest;
use test_support::process::Exit;

use super::{Moment, StreamName};

/// One start of a program, to its end.
#[derive(Clone, Debug)]
pub(crate) struct ProcessRun {
    pub(crate) program: Program,
    pub(crate) started: Moment,
    /// How far its wall clock was set ahead of the lane's: 0 but for a process with a wrong clock.
    pub(crate) clock_ahead_seconds: i64,
    /// Every line that it printed.
    pub(crate) lines: Vec<LogLine>,
    /// How it ended; none where it runs until the lane ends.
    pub(crate) exit: Option<ExitNote>,
}

/// A line as it was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// When it arrived at the lane.
    pub(crate) at: Moment,
    pub(crate) text: String,
}

/// Which program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    /// `site-agent runtime` of a stream.
    Agent(StreamName),
    /// A listener of a Site, from 1.
    Listener { site: String, number: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExitNote {
    pub(crate) at: Moment,
    pub(crate) exit: Exit,
    /// Whether the lane ended it.
    pub(crate) by_the_lane: bool,
}

/// An event of an agent's log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentLine {
    /// When the event before it was, or the start: what this one tells of was asked for after that.
    pub(crate) since: Moment,
    pub(crate) at: Moment,
    /// The event, such as `command.answered`.
    pub(crate) message: String,
    /// The other fields.
    pub(crate) fields: serde_json::Map<String, serde_json::Value>,
}

/// What the handler noted: `start <seq> <try> <commandId> [<unix seconds>.<nanoseconds>]` when it
/// begins, `end <seq> <try> <commandId> <sha256> [<unix seconds>.<nanoseconds>]` when its answer is
/// made. The time, by a right clock, tells a run that comes after its receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HandlerRun {
    pub(crate) seq: u64,
    pub(crate) try_number: u32,
    pub(crate) command_id: String,
    /// The digest that it answers with as `{"sha256": …}`, where this line is of the end.
    pub(crate) answer: Option<String>,
    pub(crate) at: Option<Moment>,
}

/// A result that an agent's journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    pub(crate) command_id: String,
    pub(crate) seq: u64,
    /// The command's digest.
    pub(crate) digest: Digest,
    pub(crate) tries: u32,
    /// The exact text of the result.
    pub(crate) result: Option<String>,
    /// Whether its receipt is there.
    pub(crate) received: bool,
}
