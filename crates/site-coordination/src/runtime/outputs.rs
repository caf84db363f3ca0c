//! Private outputs: bytes of a command that only some may see, stored before its result names them.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use database::DatabaseError;

use super::{RuntimeSide, Stored};
use crate::{
    CommandId, Digest, Environment, ReadError, StoreOutputError, Writer, store::OutputTry,
    writer::Standing,
};

/// A stored private output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredOutput {
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many bytes it has.
    pub bytes: u64,
    /// When it was stored, by the database's clock.
    pub stored_at: DateTime<Utc>,
}

impl RuntimeSide {
    /// How many private outputs a command has at the most: each try of a handler may bring its own.
    /// The table has the same bound.
    pub const MOST_OUTPUTS: u16 = 8;

    /// How often an output's statement is run. Each lost race but the last few means that another
    /// output of the command was stored.
    const OUTPUT_TRIES: u16 = Self::MOST_OUTPUTS + 4;

    /// Stores a private output of the command that is due, or finds it. The result that names its
    /// digest comes after it.
    ///
    /// # Errors
    ///
    /// In this order: the digest is not that of the bytes; the stream has no such command; it
    /// belongs to no Run; it has another ending than by a result to come; the writer is not the
    /// current one; an earlier command has no ending; it has [`RuntimeSide::MOST_OUTPUTS`]. An
    /// output that is stored is found whatever became of the command. Nothing is changed then.
    pub async fn store_output(
        &self,
        environment: Environment,
        writer: &Writer,
        command: &CommandId,
        digest: Digest,
        bytes: Vec<u8>,
    ) -> Result<(StoredOutput, Stored), StoreOutputError> {
        if Digest::of(&bytes) != digest {
            return Err(StoreOutputError::DigestMismatch);
        }
        let stream = self.stream(environment);
        let (length, bytes) = (bytes.len() as u64, Arc::new(bytes));
        for _ in 0..Self::OUTPUT_TRIES {
            let output = (digest, &bytes);
            let tried =
                self.store.store_output(&stream, writer, command, output, Self::MOST_OUTPUTS).await;
            let tried = match tried {
                Err(error) if lost_race(&error) => continue,
                tried => tried?.ok_or(StoreOutputError::UnknownCommand)?,
            };
            let stored = |stored_at| StoredOutput { digest, bytes: length, stored_at };
            match (tried.stored_at, tried.earlier) {
                (Some(at), _) => return Ok((stored(at), Stored::New)),
                (None, Some(at)) => return Ok((stored(at), Stored::Same)),
                (None, None) => {}
            }
            if let Some(refusal) = refusal(&tried, writer) {
                return Err(refusal);
            }
        }
        Err(StoreOutputError::Contended)
    }
}

/// Whether another output of the command was stored at the same moment.
fn lost_race(error: &ReadError) -> bool {
    matches!(
        error,
        ReadError::Database(DatabaseError::UniqueViolation { constraint })
            if ["private_output_slot_once", "private_output_pkey"].contains(&constraint.as_str())
    )
}

/// Why an output was not stored; `None` where it should have been.
fn refusal(tried: &OutputTry, writer: &Writer) -> Option<StoreOutputError> {
    if !tried.has_run {
        return Some(StoreOutputError::NoRun);
    }
    if let Some(stored) = tried.result {
        return Some(StoreOutputError::Conflict { stored });
    }
    if let Some(at) = tried.voided_at {
        return Some(StoreOutputError::AlreadyVoided { at });
    }
    let current = tried.writer.generation();
    match writer.standing(&tried.writer) {
        Standing::Above => return Some(StoreOutputError::HistoryDiverged { current }),
        Standing::Stale => return Some(StoreOutputError::StaleGeneration { current }),
        Standing::Current => {}
    }
    if tried.seq.get() > tried.done_seq.get() + 1 {
        return Some(StoreOutputError::PredecessorMissing { done_seq: tried.done_seq });
    }
    let limit = RuntimeSide::MOST_OUTPUTS;
    (tried.count >= u64::from(limit)).then_some(StoreOutputError::TooMany { limit })
}
