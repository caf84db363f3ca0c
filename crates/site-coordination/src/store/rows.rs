//! What the rows of the statements mean: values of this context, or [`ReadError::Corrupt`].

use chrono::{DateTime, Utc};

use crate::{
    CommandId, Digest, Generation, JsonText, Outcome, ReadError, Receipt, Seq, StoredCommand,
    statements::{CommandRow, ResultRow, StreamRow},
};

/// The state of a stream in one snapshot, and the commands after a cursor.
pub(crate) struct Snapshot {
    pub(crate) last_seq: Seq,
    pub(crate) done_seq: Seq,
    pub(crate) generation: Generation,
    /// The chain digest at the cursor; absent above the end.
    pub(crate) digest: Option<Digest>,
    /// The age in seconds of the command that is due.
    pub(crate) due_age: Option<i64>,
    pub(crate) time: DateTime<Utc>,
    pub(crate) commands: Vec<StoredCommand>,
}

/// What one run of the result's statement did and saw.
pub(crate) struct ResultTry {
    pub(crate) seq: Seq,
    pub(crate) done_seq: Seq,
    pub(crate) generation: Generation,
    /// When this statement stored the result; absent where it did not.
    pub(crate) stored_at: Option<DateTime<Utc>>,
    /// The result that was there before.
    pub(crate) earlier: Option<Receipt>,
}

pub(super) fn snapshot(row: &StreamRow, after: Seq) -> Result<Snapshot, ReadError> {
    let (last_seq, done_seq, generation, digest, due_age, time) = row;
    let digest = match digest {
        None if after == Seq::ZERO => Some(Digest::ZERO),
        None => None,
        Some(bytes) => Some(digest_of(bytes)?),
    };
    Ok(Snapshot {
        last_seq: Seq::from_database(*last_seq),
        done_seq: Seq::from_database(*done_seq),
        generation: Generation::from_database(*generation),
        digest,
        due_age: *due_age,
        time: *time,
        commands: Vec::new(),
    })
}

pub(super) fn stored_command(row: CommandRow) -> Result<StoredCommand, ReadError> {
    let (seq, id, kind, run_id, digest, chain_digest, created_at, body) = row;
    Ok(StoredCommand {
        id: command_id(&id)?,
        seq: Seq::from_database(seq),
        kind,
        run_id,
        digest: digest_of(&digest)?,
        chain_digest: digest_of(&chain_digest)?,
        created_at,
        body: JsonText::from_database(body),
    })
}

pub(super) fn result_try(id: &CommandId, row: ResultRow) -> Result<ResultTry, ReadError> {
    let (seq, done_seq, current, stored_at, digest, outcome, received_at) = row;
    let earlier = match (digest, outcome, received_at) {
        (Some(digest), Some(outcome), Some(received_at)) => Some(Receipt {
            command_id: id.clone(),
            seq: Seq::from_database(seq),
            digest: digest_of(&digest)?,
            outcome: outcome_of(&outcome)?,
            received_at,
        }),
        _ => None,
    };
    Ok(ResultTry {
        seq: Seq::from_database(seq),
        done_seq: Seq::from_database(done_seq),
        generation: Generation::from_database(current),
        stored_at,
        earlier,
    })
}

pub(super) fn command_id(text: &str) -> Result<CommandId, ReadError> {
    CommandId::parse(text).map_err(|_| ReadError::Corrupt("a command's id"))
}

pub(super) fn digest_of(bytes: &[u8]) -> Result<Digest, ReadError> {
    Digest::from_slice(bytes).ok_or(ReadError::Corrupt("a digest's length"))
}

pub(super) fn outcome_of(text: &str) -> Result<Outcome, ReadError> {
    Outcome::parse(text).map_err(|_| ReadError::Corrupt("an outcome"))
}
