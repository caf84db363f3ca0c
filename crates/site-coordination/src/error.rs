//! What each use case can answer instead of its result.

use chrono::{DateTime, SecondsFormat, Utc};
use database::DatabaseError;

use crate::{Digest, Generation, ProducerKey, Seq};

/// Why a command was not enqueued. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum EnqueueError {
    /// The key stands for another command already.
    #[error("the key {} stands for another command", key.as_str())]
    KeyConflict {
        /// The key.
        key: ProducerKey,
    },
    /// More commands at once than one statement takes.
    #[error("at most {limit} commands are enqueued at once")]
    TooMany {
        /// How many are taken.
        limit: usize,
    },
    /// `not_after` lies outside of the years 1970 to 9999.
    #[error("notAfter of the key {} lies outside of the years 1970 to 9999", key.as_str())]
    NotAfterOutOfRange {
        /// The command's key.
        key: ProducerKey,
    },
    /// The stream has as many commands without an ending as it takes.
    #[error(
        "the stream has {backlog} commands without a result and takes at most {limit}; enqueue \
         again when its Runtime has answered some, or void the one that is due if it is stuck"
    )]
    StreamFull {
        /// Commands without a result or void.
        backlog: u64,
        /// How many of them the stream takes.
        limit: u32,
    },
    /// Others enqueued at the same moment, again and again. Trying again is safe.
    #[error("the stream is too busy")]
    Contended,
    /// The database failed; enqueueing the same again is safe.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// What the database holds breaks a rule of ours: a fault, never the caller's.
    #[error("the stored data breaks a rule: {0}")]
    Corrupt(&'static str),
}

/// Why a command was not cancelled. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// The stream has no such command.
    #[error("the stream has no such command")]
    UnknownCommand,
    /// It has a result, or was voided: there is nothing to stop.
    #[error("the command has an ending already")]
    AlreadyEnded,
    /// Others cancelled at the same moment, again and again. Trying again is safe.
    #[error("the stream is too busy")]
    Contended,
    /// The database failed; cancelling again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a command was not voided. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum VoidError {
    /// The stream has no such command.
    #[error("the stream has no such command")]
    UnknownCommand,
    /// It is not the one that is due.
    #[error(
        "an earlier command has no ending yet; the last one that has is {}, and only the one after \
         it can be voided",
        done_seq.get()
    )]
    NotDue {
        /// The last command that has an ending.
        done_seq: Seq,
    },
    /// Its result came first.
    #[error("the command has a result already")]
    HasResult,
    /// The stream moved on at the same moment, again and again. Trying again is safe.
    #[error("the stream is too busy")]
    Contended,
    /// The database failed; voiding again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why nothing is known of a command's ending.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The stream has no such command.
    #[error("the stream has no such command")]
    UnknownCommand,
    /// The read failed; waiting again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<ReadError> for EnqueueError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Database(error) => Self::Database(error),
            ReadError::Corrupt(rule) => Self::Corrupt(rule),
        }
    }
}

/// Why a poll has no page.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The cursor is above the end of the stream.
    #[error("the cursor is above the end of the stream, {}", last_seq.get())]
    CursorAhead {
        /// The end.
        last_seq: Seq,
    },
    /// The commands after the cursor were removed by age.
    #[error("the commands up to {} were removed by age", after.get())]
    CursorTrimmed {
        /// Where to start again.
        after: Seq,
        /// The chain digest there.
        digest: Digest,
    },
    /// The presented chain digest or generation is not one of this stream.
    #[error("the history differs from the one that the caller saw")]
    HistoryDiverged,
    /// A newer generation exists, or the current one belongs to another session.
    #[error("the stream was taken over; the generation is {}", current.get())]
    StaleGeneration {
        /// The current generation.
        current: Generation,
    },
    /// The read failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a session was not opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenSessionError {
    /// The generation is not the expected one: a comparison that was lost.
    #[error("another generation was expected than the current one, {}", current.get())]
    StaleGeneration {
        /// The current generation.
        current: Generation,
    },
    /// A later session took the stream from this one; its id is refused for ever.
    #[error("the session was superseded; the generation is {}", current.get())]
    Superseded {
        /// The current generation.
        current: Generation,
    },
    /// Others opened sessions at the same moment, again and again. Trying again is safe.
    #[error("the stream is too busy")]
    Contended,
    /// The database failed; opening the same again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a private output was not stored. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreOutputError {
    /// The bytes have another digest than the one that they came with.
    #[error("the bytes have another digest")]
    DigestMismatch,
    /// The stream has no such command.
    #[error("the stream has no such command")]
    UnknownCommand,
    /// The command belongs to no Run, and outputs belong to Runs.
    #[error("the command belongs to no Run")]
    NoRun,
    /// The command has its result, and takes no further output.
    #[error("the command has its result, with the digest {stored}")]
    Conflict {
        /// The digest of the result.
        stored: Digest,
    },
    /// The command was voided: it takes no output.
    #[error("the command was voided at {}", at.to_rfc3339_opts(SecondsFormat::Micros, true))]
    AlreadyVoided {
        /// When, by the database's clock.
        at: DateTime<Utc>,
    },
    /// The generation is above the current one: the database was restored.
    #[error("the generation is above the current one, {}", current.get())]
    HistoryDiverged {
        /// The current generation.
        current: Generation,
    },
    /// A newer generation exists, or the current one belongs to another session.
    #[error("the stream was taken over; the generation is {}", current.get())]
    StaleGeneration {
        /// The current generation.
        current: Generation,
    },
    /// An earlier command has no result yet.
    #[error("an earlier result is missing; the last stored one is of {}", done_seq.get())]
    PredecessorMissing {
        /// The last command that has a result or is voided.
        done_seq: Seq,
    },
    /// The command has as many outputs as it may have.
    #[error("a command has at most {limit} private outputs")]
    TooMany {
        /// How many it may have.
        limit: u16,
    },
    /// Others stored outputs at the same moment, again and again. Trying again is safe.
    #[error("the stream is too busy")]
    Contended,
    /// The database failed; storing the same again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// What the database holds breaks a rule of ours: a fault, never the caller's.
    #[error("the stored data breaks a rule: {0}")]
    Corrupt(&'static str),
}

/// Why a result was not stored. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreResultError {
    /// The stream has no such command.
    #[error("the stream has no such command")]
    UnknownCommand,
    /// Another result is stored for this command.
    #[error("another result is stored, with the digest {stored}")]
    Conflict {
        /// The digest of the stored one.
        stored: Digest,
    },
    /// A newer generation exists, or the current one belongs to another session.
    #[error("the stream was taken over; the generation is {}", current.get())]
    StaleGeneration {
        /// The current generation.
        current: Generation,
    },
    /// The command was voided: it will have no result.
    #[error("the command was voided at {}", at.to_rfc3339_opts(SecondsFormat::Micros, true))]
    AlreadyVoided {
        /// When, by the database's clock.
        at: DateTime<Utc>,
    },
    /// The generation is above the current one: the database was restored.
    #[error("the generation is above the current one, {}", current.get())]
    HistoryDiverged {
        /// The current generation.
        current: Generation,
    },
    /// An earlier command has no result yet.
    #[error("an earlier result is missing; the last stored one is of {}", done_seq.get())]
    PredecessorMissing {
        /// The last command that has a result or is voided.
        done_seq: Seq,
    },
    /// The result names a private output that was not stored before.
    #[error("the private output that the result names is not stored")]
    OutputMissing,
    /// Others stored results at the same moment, again and again. Trying again is safe.
    #[error("the stream is too busy")]
    Contended,
    /// The read back failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<DatabaseError> for PollError {
    fn from(error: DatabaseError) -> Self {
        Self::Read(error.into())
    }
}

impl From<DatabaseError> for StoreResultError {
    fn from(error: DatabaseError) -> Self {
        Self::Read(error.into())
    }
}

impl From<DatabaseError> for OpenSessionError {
    fn from(error: DatabaseError) -> Self {
        Self::Read(error.into())
    }
}
