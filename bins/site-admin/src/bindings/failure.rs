//! How `site-admin bindings` ends when it fails.

use resource_provisioning::{ReadError, ReleaseError, RetainError};

use crate::Failure;

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Database(error) => error.into(),
            error @ ReadError::Corrupt(_) => Self::refused(&error),
        }
    }
}

impl From<RetainError> for Failure {
    fn from(error: RetainError) -> Self {
        match error {
            RetainError::Conflict { .. } => Self::data(error.to_string()),
            RetainError::Contended => Self::unavailable(&error),
            RetainError::Read(error) => error.into(),
        }
    }
}

impl From<ReleaseError> for Failure {
    fn from(error: ReleaseError) -> Self {
        match error {
            ReleaseError::UnknownBinding => Self::absent(error.to_string()),
            ReleaseError::Read(error) => error.into(),
        }
    }
}
