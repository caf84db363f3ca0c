//! What a Run may want to do, and the permission that its member needs for it.

use crate::Invalid;

/// Something that an Attempt of a Run does, each time with the authority of that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Execute the work.
    Execute,
    /// Fetch what the work needs from its repository.
    StageIn,
    /// Bring what the work made back to its repository.
    StageOut,
}

/// What there is to know of an action: the row of the one table that there is.
struct Row {
    name: &'static str,
    permission: &'static str,
    recovery: bool,
}

impl Action {
    /// Each action.
    pub const ALL: [Self; 3] = [Self::Execute, Self::StageIn, Self::StageOut];

    fn row(self) -> Row {
        match self {
            Self::Execute => Row { name: "execute", permission: "runs.execute", recovery: false },
            Self::StageIn => {
                Row { name: "stage_in", permission: "repositories.read", recovery: false }
            }
            Self::StageOut => {
                Row { name: "stage_out", permission: "repositories.write", recovery: true }
            }
        }
    }

    /// Takes `execute`, `stage_in` or `stage_out`.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|action| action.as_str() == text)
            .ok_or(Invalid("an action is execute, stage_in or stage_out"))
    }

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The permission that the member needs in the Project of the Run.
    #[must_use]
    pub fn permission(self) -> &'static str {
        self.row().permission
    }

    /// Whether it only brings home what was done, so that the deadline does not end it.
    #[must_use]
    pub fn is_recovery(self) -> bool {
        self.row().recovery
    }
}
