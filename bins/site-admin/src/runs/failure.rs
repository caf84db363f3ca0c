//! How `site-admin runs` ends when it fails.

use execution_core::{AcceptError, CancelError, ReadError, SubmitError};

use super::unknown_run;
use crate::Failure;

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Database(error) => error.into(),
            error @ ReadError::Corrupt(_) => Self::refused(&error),
        }
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Conflict { .. } => Self::data(error.to_string()),
            AcceptError::Read(error) => error.into(),
        }
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::UnknownRun => unknown_run(),
            SubmitError::Cancelled | SubmitError::NotNext { .. } => Self::data(error.to_string()),
            SubmitError::Contended => Self::unavailable(&error),
            SubmitError::Read(error) => error.into(),
        }
    }
}

impl From<CancelError> for Failure {
    fn from(error: CancelError) -> Self {
        match error {
            CancelError::UnknownRun => unknown_run(),
            CancelError::Read(error) => error.into(),
        }
    }
}
