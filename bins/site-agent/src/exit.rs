//! The codes with which the agent ends, for a supervisor and its operator.

use std::process::ExitCode;

/// Why the agent ended.
///
/// | Code | Means | Start it again? |
/// |---|---|---|
/// | 0 | stopped by SIGTERM or SIGINT | when wanted |
/// | 64 | an argument, a setting or a file that it names is wrong, or the journal is of another Site API; each mistake is in the log | after the correction |
/// | 65 | the stream is not the one that the journal knows, or another result is stored: going on could do harm | after somebody has looked |
/// | 70 | the journal is damaged, the state folder can't be used, or an error of the agent itself | after somebody has looked |
/// | 73 | another agent uses the state folder | no |
/// | 143 | a second signal: stopped without tidying up | when wanted |
///
/// A refused credential (401, 403) is no reason to end: tokens are rotated and grants repaired
/// while the agent runs, so it logs an alarm and tries again, at most every ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0.
    Stopped,
    /// 64.
    Settings,
    /// 65.
    Stream,
    /// 70.
    Internal,
    /// 73.
    StateInUse,
    /// 143.
    Hurried,
}

impl Exit {
    /// The number that a supervisor sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Settings => 64,
            Self::Stream => 65,
            Self::Internal => 70,
            Self::StateInUse => 73,
            Self::Hurried => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
