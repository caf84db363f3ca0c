//! What each use case can answer instead of its result.

use database::DatabaseError;

use crate::{AttemptNumber, RunId};

/// Why a Run was not accepted. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The id stands for another Run already.
    #[error("the id {} stands for another Run", run.as_str())]
    Conflict {
        /// The id.
        run: RunId,
    },
    /// The database failed; accepting the same again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why an Attempt was not submitted. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// There is no such Run.
    #[error("there is no such Run")]
    UnknownRun,
    /// The Run was cancelled.
    #[error("the Run was cancelled")]
    Cancelled,
    /// Another number is next.
    #[error("{}", not_next(*latest))]
    NotNext {
        /// The newest Attempt, where the Run has one.
        latest: Option<AttemptNumber>,
    },
    /// Others submitted at the same moment, again and again. Trying again is safe.
    #[error("too many submit Attempts of the Run at once")]
    Contended,
    /// The database failed; submitting the same again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a Run was not cancelled. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// There is no such Run.
    #[error("there is no such Run")]
    UnknownRun,
    /// The database failed; cancelling again is safe.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why an Attempt was not noted as over. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// There is no such Run.
    #[error("there is no such Run")]
    UnknownRun,
    /// The Run has no such Attempt.
    #[error("the Run has no such Attempt")]
    UnknownAttempt,
    /// The database failed; trying again is safe.
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

fn not_next(latest: Option<AttemptNumber>) -> String {
    match latest {
        None => "the Run has no Attempt yet, so the next one is 1".to_owned(),
        Some(latest) if latest == AttemptNumber::LAST => {
            format!("the Run has {} Attempts, and can have no more", latest.get())
        }
        Some(latest) => format!(
            "the Run's newest Attempt is {}, so the next one is {}",
            latest.get(),
            latest.get() + 1
        ),
    }
}
