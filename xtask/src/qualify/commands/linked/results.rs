//! What a linked Runtime answers to a command.

use std::time::Duration;

use bytes::Bytes;
use site_client::{ResultToStore, output_digest, result_digest};
use site_protocol::{Command, Digest};

use crate::qualify::commands::{
    history::Outcome,
    producers::{What, Work},
};

/// A result, made once and sent as often as it takes.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) command_id: String,
    pub(super) seq: u64,
    /// The chain digest at the command.
    pub(super) chain_digest: Digest,
    pub(super) outcome: Outcome,
    pub(super) result: Bytes,
    /// The private output that the result names.
    pub(super) output: Option<Bytes>,
    /// How long the work takes.
    pub(super) time: Duration,
}

impl Prepared {
    /// Does what the command's body says. `nonce` tells the results of one memory from those of
    /// another: a Runtime that lost its memory would not make the same bytes.
    pub(super) fn of(command: &Command, chain_digest: Digest, nonce: u64) -> Self {
        // Of a body that it can't read it makes nothing.
        let work: Option<Work> = serde_json::from_str(command.body.get()).ok();
        let what = work.as_ref().map_or(What::Reject, |work| work.what);
        let (word, outcome) = match what {
            What::Quick | What::Slow | What::Private => ("succeeded", Outcome::Succeeded),
            What::Fail => ("failed", Outcome::Failed),
            What::Reject => ("rejected", Outcome::Rejected),
        };
        let of = command.digest;
        let output = (what == What::Private && command.run_id.is_some())
            .then(|| Bytes::from(format!("private {of} {nonce:016x}")));
        let named = output
            .as_ref()
            .map(|output| format!(r#","privateOutput":"{}""#, output_digest(output)))
            .unwrap_or_default();
        let result = format!(
            r#"{{"outcome":"{word}","output":{{"of":"{of}","by":"{nonce:016x}"}}{named}}}"#
        );
        Self {
            command_id: command.command_id.clone(),
            seq: command.seq,
            chain_digest,
            outcome,
            result: result.into(),
            output,
            time: Duration::from_millis(work.map_or(0, |work| work.ms)),
        }
    }

    /// Other bytes for the same command.
    pub(super) fn contradiction(&self) -> Self {
        let result = Bytes::from_static(br#"{"outcome":"failed","detail":"another answer"}"#);
        Self { outcome: Outcome::Failed, result, output: None, ..self.clone() }
    }

    pub(super) fn digest(&self) -> Digest {
        result_digest(&self.result)
    }

    pub(super) fn output_digest(&self) -> Option<Digest> {
        self.output.as_ref().map(|output| output_digest(output))
    }

    pub(super) fn to_store(&self) -> ResultToStore<'_> {
        ResultToStore {
            command_id: &self.command_id,
            seq: self.seq,
            chain_digest: self.chain_digest,
            result: self.result.clone(),
        }
    }
}
