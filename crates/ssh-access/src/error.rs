//! What each use case can answer instead of its result.

use chrono::{DateTime, SecondsFormat, Utc};
use database::DatabaseError;
use ssh_keys::KeyId;

use crate::MemberId;

/// Why a key was not added. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum AddKeyError {
    /// The member has as many keys as it may have.
    #[error("a member has at most {limit} keys; remove one first")]
    TooMany {
        /// How many it may have.
        limit: u32,
    },
    /// The member has this very key with another end.
    #[error("the member has this key as {}, {}; remove it first", id.as_str(), ends(*expires_at))]
    OtherEnd {
        /// The key that is there.
        id: KeyId,
        /// When that one expires.
        expires_at: Option<DateTime<Utc>>,
    },
    /// The end has passed already.
    #[error("the key would have expired already")]
    EndPassed,
    /// The random source failed, so that there is no id.
    #[error("the random source failed")]
    Random,
    /// Others changed the member's keys at the same moment, again and again. Trying again is safe.
    #[error("too many change the keys of the member at once")]
    Contended,
    /// The database failed; adding the same again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a key was not removed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveKeyError {
    /// There is no such key.
    #[error("there is no such key")]
    UnknownKey,
    /// The database failed; removing again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a member was not given a user of a Site. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum AddAccountError {
    /// The user belongs to another member.
    #[error("the user belongs to the member {}", member.as_str())]
    Taken {
        /// Whom it belongs to.
        member: MemberId,
    },
    /// Others changed the account at the same moment, again and again. Trying again is safe.
    #[error("too many change the account at once")]
    Contended,
    /// The database failed; adding the same again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a user of a Site was not taken from a member. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveAccountError {
    /// Nobody ever had this user.
    #[error("no member has or had this user")]
    UnknownAccount,
    /// The database failed; removing again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why there are no changes after a cursor.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// The changes after the cursor are gone: a snapshot is needed.
    #[error("the changes after the cursor were compacted")]
    Compacted,
    /// The cursor is no place of this feed: above its head, or of another history. A snapshot is
    /// needed.
    #[error("the cursor is none of this feed")]
    Unknown,
    /// The read failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why an acknowledgement was not stored. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AcknowledgeError {
    /// The changes around the cursor are gone, so that it can't be checked: a snapshot is needed.
    #[error("the changes around the cursor were compacted")]
    Compacted,
    /// The cursor or its chain digest is none of this feed. A snapshot is needed.
    #[error("the cursor is none of this feed")]
    Unknown,
    /// The feed moved on at the same moment, again and again. Trying again is safe.
    #[error("the feed is too busy")]
    Contended,
    /// The database failed; acknowledging again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why nothing was propagated. Nothing was changed, and trying again is safe.
#[derive(Debug, thiserror::Error)]
pub enum PropagateError {
    /// The lease has expired or is somebody else's.
    #[error("the lease is lost")]
    LeaseLost,
    /// The read failed, or what was read can't be propagated.
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

impl From<DatabaseError> for ChangesError {
    fn from(error: DatabaseError) -> Self {
        Self::Read(error.into())
    }
}

impl From<DatabaseError> for AcknowledgeError {
    fn from(error: DatabaseError) -> Self {
        Self::Read(error.into())
    }
}

impl From<DatabaseError> for PropagateError {
    fn from(error: DatabaseError) -> Self {
        Self::Read(error.into())
    }
}

fn ends(expires_at: Option<DateTime<Utc>>) -> String {
    match expires_at {
        None => "without an end".to_owned(),
        Some(at) => format!("until {}", at.to_rfc3339_opts(SecondsFormat::Micros, true)),
    }
}
