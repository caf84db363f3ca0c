//! What a linked Runtime answers to a command, and what it keeps of that.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use site_client::{ResultToStore, output_digest, result_digest};
use site_protocol::{Command, Digest};

use crate::qualify::commands::{
    history::Outcome,
    producers::{What, Work},
};

/// The results that have a receipt, as a Runtime keeps them on its disk: after a database was restored
/// a command that comes back gets the same bytes. Shared by all lives; places and sessions are not
/// kept.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<HashMap<String, u64>>>);

impl Kept {
    /// There is a receipt for this result.
    pub(super) fn keep(&self, result: &Prepared) {
        self.lock().entry(result.command_id.clone()).or_insert(result.nonce);
    }

    /// The result of a command: the one that has a receipt, or the one of `nonce`.
    pub(super) fn result(&self, command: &Command, chain_digest: Digest, nonce: u64) -> Prepared {
        let kept = self.lock().get(&command.command_id).copied();
        Prepared::of(command, chain_digest, kept.unwrap_or(nonce))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
    nonce: u64,
}

impl Prepared {
    /// Does what the command's body says. `nonce` tells the results of one life from those of another,
    /// so that nobody's bytes pass for somebody else's.
    fn of(command: &Command, chain_digest: Digest, nonce: u64) -> Self {
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
            nonce,
        }
    }

    /// Other bytes for the same command. They name an output that nobody stores, so that they are
    /// refused also where a restored database lacks the first ones.
    pub(super) fn contradiction(&self) -> Self {
        let output = Bytes::from(format!("never stored {}", self.command_id));
        let named = output_digest(&output);
        let result = format!(r#"{{"outcome":"failed","privateOutput":"{named}"}}"#).into();
        Self { outcome: Outcome::Failed, result, output: Some(output), ..self.clone() }
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
