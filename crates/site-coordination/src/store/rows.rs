//! What a column means: a value of this context, or [`ReadError::Corrupt`].

use crate::{CommandId, Digest, Outcome, ReadError};

pub(super) fn command_id(text: &str) -> Result<CommandId, ReadError> {
    CommandId::parse(text).map_err(|_| ReadError::Corrupt("a command's id"))
}

pub(super) fn digest_of(bytes: &[u8]) -> Result<Digest, ReadError> {
    Digest::from_slice(bytes).ok_or(ReadError::Corrupt("a digest's length"))
}

pub(super) fn outcome_of(text: &str) -> Result<Outcome, ReadError> {
    Outcome::parse(text).map_err(|_| ReadError::Corrupt("an outcome"))
}
