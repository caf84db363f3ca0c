//! What a linked Runtime asked for, and what it was told.

use site_protocol::Digest;

use super::{Moment, Outcome, StreamName};

/// One request of a linked Runtime, by whatever sender.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) stream: StreamName,
    /// Which of the senders, such as `sender 1 of session 3`.
    pub(crate) sender: String,
    pub(crate) began: Moment,
    pub(crate) ended: Moment,
    pub(crate) told: Told,
}

/// A request with its answer.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Session(OpenSession, Answer<OpenedSession>),
    Poll(Poll, Answer<Page>),
    /// The answer as a whole; each result has its own within.
    Results(SendResults, Answer<Option<Page>>),
    Output(StoreOutput, Answer<StoredOutput>),
}

/// What became of a request, or of one result of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer<T> {
    Good(T),
    /// A problem of the Site API.
    Refused(Refused),
    /// No answer, or one of somebody else's: it may have been done, or not.
    Unknown(String),
    /// An answer that breaks a rule of the protocol, such as a page with a gap. Never right.
    Broken(String),
}

/// A problem with what it carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) generation: Option<u64>,
    pub(crate) done_seq: Option<u64>,
    pub(crate) last_seq: Option<u64>,
    pub(crate) stored_digest: Option<Digest>,
}

/// As whom a request was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Writer {
    pub(crate) generation: u64,
    pub(crate) session_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenSession {
    pub(crate) session_id: String,
    pub(crate) expected_generation: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenedSession {
    /// 201 and not 200.
    pub(crate) new: bool,
    pub(crate) generation: u64,
    pub(crate) done_seq: u64,
    pub(crate) done_digest: Digest,
    pub(crate) last_seq: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Poll {
    pub(crate) writer: Writer,
    pub(crate) after: u64,
    pub(crate) after_digest: Option<Digest>,
    pub(crate) limit: u32,
}

/// A page of commands, of a poll or brought by results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) commands: Vec<PagedCommand>,
    pub(crate) next_after: u64,
    pub(crate) last_seq: u64,
    /// The command whose result is due.
    pub(crate) head_seq: Option<u64>,
    pub(crate) superseded: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PagedCommand {
    pub(crate) seq: u64,
    pub(crate) command_id: String,
    pub(crate) digest: Digest,
    pub(crate) voided: bool,
}

/// Results in one call; one alone where it is a single result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SendResults {
    pub(crate) writer: Writer,
    /// Whether it went to the route for many.
    pub(crate) batch: bool,
    /// How many commands it should bring along.
    pub(crate) next: Option<u32>,
    pub(crate) results: Vec<SendResult>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SendResult {
    pub(crate) command_id: String,
    /// Where the sender believes that the command stands.
    pub(crate) seq: u64,
    /// SHA-256 of the result's bytes.
    pub(crate) digest: Digest,
    pub(crate) outcome: Outcome,
    /// The private output that it names.
    pub(crate) output: Option<Digest>,
    /// What it was told of this one. Of a call without an answer as a whole, that answer again.
    pub(crate) answer: Answer<StoredResult>,
}

/// A receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredResult {
    /// 201 and not 200.
    pub(crate) new: bool,
    pub(crate) seq: u64,
    pub(crate) digest: Digest,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreOutput {
    pub(crate) writer: Writer,
    pub(crate) command_id: String,
    pub(crate) digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredOutput {
    /// 201 and not 200.
    pub(crate) new: bool,
}
