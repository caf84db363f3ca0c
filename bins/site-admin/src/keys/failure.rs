//! How `site-admin keys` and `site-admin accounts` end when they fail.

use ssh_access::{AddAccountError, AddKeyError, ReadError, RemoveAccountError, RemoveKeyError};

use crate::Failure;

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Database(error) => error.into(),
            error @ ReadError::Corrupt(_) => Self::refused(&error),
        }
    }
}

impl From<AddKeyError> for Failure {
    fn from(error: AddKeyError) -> Self {
        match error {
            AddKeyError::TooMany { .. } | AddKeyError::OtherEnd { .. } | AddKeyError::EndPassed => {
                Self::data(error.to_string())
            }
            AddKeyError::Random => Self::refused(&error),
            AddKeyError::Contended => Self::unavailable(&error),
            AddKeyError::Read(error) => error.into(),
        }
    }
}

/// The reason where a key alone is refused, so that others can still be added.
pub(super) fn refused_alone(error: AddKeyError) -> Result<String, Failure> {
    match error {
        AddKeyError::TooMany { .. } | AddKeyError::OtherEnd { .. } | AddKeyError::EndPassed => {
            Ok(error.to_string())
        }
        error => Err(error.into()),
    }
}

impl From<RemoveKeyError> for Failure {
    fn from(error: RemoveKeyError) -> Self {
        match error {
            RemoveKeyError::UnknownKey => Self::absent(error.to_string()),
            RemoveKeyError::Read(error) => error.into(),
        }
    }
}

impl From<AddAccountError> for Failure {
    fn from(error: AddAccountError) -> Self {
        match error {
            AddAccountError::Taken { .. } => Self::data(error.to_string()),
            AddAccountError::Contended => Self::unavailable(&error),
            AddAccountError::Read(error) => error.into(),
        }
    }
}

impl From<RemoveAccountError> for Failure {
    fn from(error: RemoveAccountError) -> Self {
        match error {
            RemoveAccountError::UnknownAccount => Self::absent(error.to_string()),
            RemoveAccountError::Read(error) => error.into(),
        }
    }
}
