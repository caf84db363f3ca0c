//! How a command of `site-admin` ends when it fails.

use std::{error::Error, io, process::ExitCode};

use ::database::{ConnectError, DatabaseError, MigrateError, RightsError, RoleError, SchemaError};
use service_kit::{SettingsErrors, error_chain};
use site_coordination::{CancelError, EnqueueError, ReadError, VoidError, WaitError};

use crate::{exit::Exit, output};

/// A failure with its exit code; nothing was changed unless the text says so.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    text: String,
}

impl Failure {
    /// The input is wrong or contradicts what is stored (`EX_DATAERR`).
    pub(crate) fn data(text: impl Into<String>) -> Self {
        Self { exit: Exit::Data, text: text.into() }
    }

    /// What was asked for is not there (`EX_NOINPUT`).
    pub(crate) fn absent(text: impl Into<String>) -> Self {
        Self { exit: Exit::Absent, text: text.into() }
    }

    /// The database can't be reached (`EX_UNAVAILABLE`).
    pub(crate) fn unavailable(error: &dyn Error) -> Self {
        Self { exit: Exit::Unavailable, text: error_chain(error) }
    }

    /// The database refused, or something of ours is wrong (`EX_SOFTWARE`).
    pub(crate) fn refused(error: &dyn Error) -> Self {
        Self { exit: Exit::Refused, text: error_chain(error) }
    }

    /// A file can't be made (`EX_CANTCREAT`).
    pub(crate) fn cannot_create(text: impl Into<String>) -> Self {
        Self { exit: Exit::CannotCreate, text: text.into() }
    }

    /// Standard output can't be written (`EX_IOERR`). What was done stays done.
    pub(crate) fn output(error: &io::Error) -> Self {
        Self { exit: Exit::Output, text: format!("can't write to standard output: {error}") }
    }

    /// Says what happened and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        output::say(format_args!("site-admin: {}", self.text));
        self.exit.into()
    }
}

impl From<SettingsErrors> for Failure {
    fn from(errors: SettingsErrors) -> Self {
        Self { exit: Exit::Usage, text: format!("the settings are wrong:\n{errors}") }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Unreachable(_) => Self::unavailable(&error),
            ConnectError::Refused(_) => Self::refused(&error),
            // A file that a setting names.
            ConnectError::RootCertificates { .. } => {
                Self { exit: Exit::Usage, text: error_chain(&error) }
            }
        }
    }
}

impl From<MigrateError> for Failure {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Connect(error) => error.into(),
            error => Self::refused(&error),
        }
    }
}

impl From<SchemaError> for Failure {
    fn from(error: SchemaError) -> Self {
        match error {
            SchemaError::Connect(error) => error.into(),
            error => Self::refused(&error),
        }
    }
}

impl From<RoleError> for Failure {
    fn from(error: RoleError) -> Self {
        match error {
            RoleError::Connect(error) => error.into(),
            error => Self::refused(&error),
        }
    }
}

impl From<RightsError> for Failure {
    fn from(error: RightsError) -> Self {
        match error {
            RightsError::Connect(error) => error.into(),
            error => Self::refused(&error),
        }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Unavailable(_) => Self::unavailable(&error),
            error => Self::refused(&error),
        }
    }
}

impl From<EnqueueError> for Failure {
    fn from(error: EnqueueError) -> Self {
        match error {
            EnqueueError::Database(error) => error.into(),
            error @ (EnqueueError::Contended | EnqueueError::StreamFull { .. }) => {
                Self::unavailable(&error)
            }
            error @ EnqueueError::Corrupt(_) => Self::refused(&error),
            EnqueueError::KeyConflict { .. }
            | EnqueueError::TooMany { .. }
            | EnqueueError::NotAfterOutOfRange { .. } => Self::data(error.to_string()),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Database(error) => error.into(),
            error => Self::refused(&error),
        }
    }
}

impl From<CancelError> for Failure {
    fn from(error: CancelError) -> Self {
        match error {
            CancelError::UnknownCommand => Self::absent(error.to_string()),
            CancelError::AlreadyEnded => Self::data(error.to_string()),
            CancelError::Contended => Self::unavailable(&error),
            CancelError::Read(error) => error.into(),
        }
    }
}

impl From<VoidError> for Failure {
    fn from(error: VoidError) -> Self {
        match error {
            VoidError::UnknownCommand => Self::absent(error.to_string()),
            VoidError::NotDue { .. } | VoidError::HasResult => Self::data(error.to_string()),
            VoidError::Contended => Self::unavailable(&error),
            VoidError::Read(error) => error.into(),
        }
    }
}

impl From<WaitError> for Failure {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::UnknownCommand => Self::absent(error.to_string()),
            WaitError::Read(error) => error.into(),
        }
    }
}
