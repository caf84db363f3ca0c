//! What each use case can answer instead of its result.

use database::DatabaseError;

use crate::BindingId;

/// Why a binding was not retained. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum RetainError {
    /// The member has another one at the Site, which has to be released first.
    #[error("the member has another binding at the Site, {}; release it first", retained.get())]
    Conflict {
        /// The one that is retained.
        retained: BindingId,
    },
    /// Others retained and released at the same moment, again and again. Trying again is safe.
    #[error("too many retain and release bindings of the member at once")]
    Contended,
    /// The database failed; retaining the same again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a binding was not released. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// There is no such binding.
    #[error("there is no such binding")]
    UnknownBinding,
    /// The database failed; releasing again is safe.
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
