//! Installs PostgreSQL where the machine has none.

use super::{FindError, Installation, Search};

/// Why there is no PostgreSQL.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The search found a mistake.
    #[error(transparent)]
    Find(#[from] FindError),
    /// None.
    #[error("no PostgreSQL")]
    None,
}

/// Finds PostgreSQL or prepares it.
///
/// # Errors
///
/// When there is none and none can be prepared.
pub fn prepare(search: &Search) -> Result<Installation, PrepareError> {
    search.find()?.ok_or(PrepareError::None)
}
