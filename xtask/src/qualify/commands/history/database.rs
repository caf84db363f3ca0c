//! What the database holds in the end, row by row.

use site_protocol::Digest;

use super::{Outcome, StreamName};

/// All streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Database {
    pub(crate) streams: Vec<StreamRows>,
    pub(crate) events: Vec<EventRow>,
}

/// One stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamRows {
    pub(crate) stream: StreamName,
    pub(crate) last_seq: u64,
    pub(crate) last_digest: Digest,
    pub(crate) done_seq: u64,
    pub(crate) generation: u64,
    pub(crate) session_id: Option<String>,
    /// In the order of their places.
    pub(crate) commands: Vec<CommandRow>,
    pub(crate) results: Vec<ResultRow>,
    pub(crate) voids: Vec<VoidRow>,
    pub(crate) cancels: Vec<Cancel>,
    pub(crate) outputs: Vec<OutputRow>,
    pub(crate) sessions: Vec<SessionRow>,
}

#[derive(Clone, Debug)]
pub(crate) struct CommandRow {
    pub(crate) seq: u64,
    pub(crate) command_id: String,
    pub(crate) key: String,
    pub(crate) kind: String,
    pub(crate) run_id: Option<String>,
    /// In the one spelling of the digest.
    pub(crate) not_after: Option<String>,
    pub(crate) digest: Digest,
    pub(crate) chain_digest: Digest,
    pub(crate) body: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct ResultRow {
    pub(crate) seq: u64,
    pub(crate) digest: Digest,
    pub(crate) outcome: Outcome,
    pub(crate) generation: u64,
    pub(crate) received_at_micros: i64,
    pub(crate) output: Option<Digest>,
    pub(crate) body: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct VoidRow {
    pub(crate) seq: u64,
    pub(crate) reason: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Cancel {
    pub(crate) seq: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct OutputRow {
    pub(crate) seq: u64,
    pub(crate) digest: Digest,
    /// SHA-256 of the bytes that are there.
    pub(crate) bytes: Digest,
}

#[derive(Clone, Debug)]
pub(crate) struct SessionRow {
    pub(crate) generation: u64,
    pub(crate) session_id: String,
    pub(crate) opened_at_micros: i64,
    pub(crate) superseded_at_micros: Option<i64>,
}

#[derive(Clone, Debug)]
pub(crate) struct EventRow {
    pub(crate) site: String,
    pub(crate) seq: u64,
    pub(crate) kind: String,
    pub(crate) environment: String,
    pub(crate) subject: String,
}
