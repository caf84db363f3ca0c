//! The lines of a journal.

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
    /// The generation of the last session that was opened.
    Generation { generation: u64 },
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
    /// The result, as the exact text that is sent, and the private output that it names.
    Finished {
        seq: u64,
        command_id: String,
        digest: Digest,
        result: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<OutputNote>,
    },
    /// The command has its ending: the receipt is here, or it was voided. `chain_digest` is the one
    /// at this command.
    Received { seq: u64, command_id: String, chain_digest: Digest },
    /// A result whose receipt was here, kept for after a restored database. Compaction writes it in
    /// place of the three lines before.
    Kept {
        seq: u64,
        command_id: String,
        digest: Digest,
        #[serde(rename = "try")]
        try_number: u32,
        result: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<OutputNote>,
    },
}

/// What is noted of a private output; its bytes are in a file of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OutputNote {
    /// The SHA-256 of the bytes.
    pub(crate) digest: Digest,
    /// How many there are.
    pub(crate) bytes: u64,
}

impl Header {
    pub(super) fn new(origin: &Origin) -> Self {
        Self { journal: VERSION, origin: origin.to_string() }
    }

    pub(super) fn is_current(&self) -> bool {
        self.journal == VERSION
    }
}
