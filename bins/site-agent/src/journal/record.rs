//! The lines of a journal, and the state that they add up to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use site_client::Origin;
use site_protocol::Digest;

/// The version of the lines below.
const VERSION: u32 = 1;

/// The first line: what the file is, and for which Site API.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    journal: u32,
    pub(super) origin: String,
}

/// Every other line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Record {
    /// Where the work goes on after.
    Cursor { seq: u64, chain_digest: Digest },
    /// The handler is about to be run for the n-th time.
    Started {
        seq: u64,
        command_id: String,
        digest: Digest,
        #[serde(rename = "try")]
        try_number: u32,
    },
    /// The result, as the exact text that is sent.
    Finished { seq: u64, command_id: String, digest: Digest, result: String },
    /// The receipt is here; `chain_digest` is the one at this command.
    Received { seq: u64, command_id: String, chain_digest: Digest },
}

/// A place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The sequence of the last command that is done; 0 before the first.
    pub(crate) seq: u64,
    /// The chain digest there.
    pub(crate) chain_digest: Digest,
}

/// A command without a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its sequence.
    pub(crate) seq: u64,
    /// Its digest: the same id with another digest is another command.
    pub(crate) digest: Digest,
    /// How often the handler was started for it.
    pub(crate) tries: u32,
    /// The result, once there is one.
    pub(crate) result: Option<String>,
}

/// What all records together say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) cursor: Option<Cursor>,
    /// By command id.
    pub(super) open: BTreeMap<String, Entry>,
}

impl Header {
    pub(super) fn new(origin: &Origin) -> Self {
        Self { journal: VERSION, origin: origin.to_string() }
    }

    pub(super) fn is_current(&self) -> bool {
        self.journal == VERSION
    }
}

impl State {
    /// Adds what one more record says. Never fails: whatever was recorded has happened.
    pub(super) fn apply(&mut self, record: Record) {
        match record {
            Record::Cursor { seq, chain_digest } => {
                self.cursor = Some(Cursor { seq, chain_digest });
            }
            Record::Started { seq, command_id, digest, try_number } => {
                self.entry(command_id, seq, digest).tries = try_number;
            }
            Record::Finished { seq, command_id, digest, result } => {
                self.entry(command_id, seq, digest).result = Some(result);
            }
            Record::Received { seq, command_id, chain_digest } => {
                self.open.remove(&command_id);
                self.cursor = Some(Cursor { seq, chain_digest });
            }
        }
    }

    /// The fewest records that add up to this state.
    pub(super) fn records(&self) -> Vec<Record> {
        let cursor =
            self.cursor.map(|Cursor { seq, chain_digest }| Record::Cursor { seq, chain_digest });
        let open = self.open.iter().flat_map(|(command_id, entry)| {
            let Entry { seq, digest, tries, .. } = *entry;
            let started = (tries > 0 || entry.result.is_none()).then(|| Record::Started {
                seq,
                command_id: command_id.clone(),
                digest,
                try_number: tries,
            });
            let finished = entry.result.clone().map(|result| Record::Finished {
                seq,
                command_id: command_id.clone(),
                digest,
                result,
            });
            started.into_iter().chain(finished)
        });
        cursor.into_iter().chain(open).collect()
    }

    /// The entry of a command; one with another place or digest is replaced.
    fn entry(&mut self, command_id: String, seq: u64, digest: Digest) -> &mut Entry {
        let fresh = || Entry { seq, digest, tries: 0, result: None };
        let entry = self.open.entry(command_id).or_insert_with(fresh);
        if (entry.seq, entry.digest) != (seq, digest) {
            *entry = fresh();
        }
        entry
    }
}
