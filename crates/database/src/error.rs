//! What can go wrong with a statement.

use diesel::result::{DatabaseErrorKind, Error};

/// Why a statement brought no rows.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database did not answer: try again later. The statement may have taken effect.
    #[error("the database does not answer: {0}")]
    Unavailable(String),
    /// A unique constraint refused the statement, which left nothing behind.
    #[error("the constraint {constraint} was violated")]
    UniqueViolation {
        /// The constraint's name.
        constraint: String,
    },
    /// The database refused the statement for another reason: a fault of ours.
    #[error("the database refused a statement")]
    Refused(#[source] Error),
}

impl DatabaseError {
    pub(crate) fn from_diesel(error: Error) -> Self {
        match error {
            Error::DatabaseError(DatabaseErrorKind::UniqueViolation, information) => {
                Self::UniqueViolation {
                    constraint: information.constraint_name().unwrap_or_default().to_owned(),
                }
            }
            Error::DatabaseError(
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
                information,
            ) => Self::Unavailable(information.message().to_owned()),
            other => Self::Refused(other),
        }
    }
}
