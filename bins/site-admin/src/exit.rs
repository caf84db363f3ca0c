//! Every exit code of `site-admin`, in one table that the help prints.

use std::process::ExitCode;

/// How a run ends. The numbers from 64 on are those of sysexits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 10,
    Rejected = 11,
    Voided = 12,
    Usage = 64,
    Data = 65,
    Absent = 66,
    Unavailable = 69,
    Refused = 70,
    CannotCreate = 73,
    Output = 74,
    NotYet = 75,
    NotAdmitted = 77,
}

impl Exit {
    const ALL: [Self; 13] = [
        Self::Done,
        Self::Failed,
        Self::Rejected,
        Self::Voided,
        Self::Usage,
        Self::Data,
        Self::Absent,
        Self::Unavailable,
        Self::Refused,
        Self::CannotCreate,
        Self::Output,
        Self::NotYet,
        Self::NotAdmitted,
    ];

    /// What it means, as in the table of docs/OPERATIONS.md.
    fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done; the awaited command succeeded; the bearer is active",
            Self::Failed => "the awaited command failed",
            Self::Rejected => "the awaited command was rejected",
            Self::Voided => "the awaited command was voided",
            Self::Usage => "arguments or settings",
            Self::Data => "wrong or contradicting input",
            Self::Absent => {
                "what was asked for is not there: a command, a Run, a binding, a key, an account, a grant, a \
                 file to read"
            }
            Self::Unavailable => {
                "the database or the Site API can't be reached, or the stream is too busy or full"
            }
            Self::Refused => "the database refused; a fault of ours",
            Self::CannotCreate => "a file can't be made, or exists",
            Self::Output => "standard output can't be written; what was done stays done",
            Self::NotYet => "the awaited command has not ended in the given time",
            Self::NotAdmitted => "the bearer is not active; the Site API answered it otherwise",
        }
    }

    /// The table, for the help.
    pub(crate) fn table() -> String {
        let rows = Self::ALL.map(|exit| format!("  {:>2}  {}\n", exit as u8, exit.meaning()));
        format!("Exit codes:\n{}", rows.concat())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
