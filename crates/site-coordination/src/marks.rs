//! Marks on commands: cancelled, which is a wish, and voided, which is an ending.

use chrono::{DateTime, Utc};
use database::DatabaseError;

use crate::{
    CancelError, CommandId, Invalid, Producer, ReadError, Stream, VoidError, wakeups::News,
};

/// The mark of a cancelled command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// Its number among the stream's marks: 1 and up, without a gap.
    pub cancel_rev: u64,
    /// When it was made, by the database's clock.
    pub at: DateTime<Utc>,
    /// Whether this call made it. False also where it did and the answer got lost between the
    /// database and this process, so that the statement was repeated.
    pub new: bool,
}

/// That a command ended without a result, and will never have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voided {
    /// Why.
    pub reason: VoidReason,
    /// What the operator said; absent where it expired.
    pub note: Option<String>,
    /// When, by the database's clock.
    pub at: DateTime<Utc>,
}

/// Why a command was voided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidReason {
    /// Its `not_after` passed before its result came.
    Expired,
    /// An operator gave it up.
    Operator,
}

impl VoidReason {
    /// Takes `expired` or `operator`.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        [Self::Expired, Self::Operator]
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or(Invalid("a reason to void is expired or operator"))
    }

    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Operator => "operator",
        }
    }
}

/// Why an operator voids a command: 1 to 1024 bytes on one line, without outer white space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoidNote(String);

impl VoidNote {
    /// Takes a text that is a note; white space around it is cut off.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        if (1..=1024).contains(&text.len()) && !text.chars().any(char::is_control) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid("a note is 1 to 1024 bytes without a line break or another control character"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Producer {
    /// How often a mark's statement is run again after a lost race. Each loss means that the stream
    /// moved on.
    const TRIES: usize = 8;

    /// Asks a Runtime to stop a command. The command stays, and has an ending like every other:
    /// its result, or that it is voided.
    ///
    /// Cancelling it again answers the first mark, also after its ending.
    ///
    /// # Errors
    ///
    /// [`CancelError::AlreadyEnded`] where it has an ending and no mark.
    pub async fn cancel(&self, stream: &Stream, id: &CommandId) -> Result<Cancelled, CancelError> {
        for _ in 0..Self::TRIES {
            match self.store.cancel(stream, id).await {
                Ok(None) => return Err(CancelError::UnknownCommand),
                Ok(Some(None)) => return Err(CancelError::AlreadyEnded),
                Ok(Some(Some(cancelled))) => {
                    self.announcer.announce(stream, News::Commands);
                    return Ok(cancelled);
                }
                Err(error) if lost_race(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(CancelError::Contended)
    }

    /// Ends the command that is due without a result, so that those after it can have theirs: for
    /// an operator who gives up waiting for it. A result that comes later is refused.
    ///
    /// Voiding it again answers what is stored, whoever voided it.
    ///
    /// # Errors
    ///
    /// [`VoidError::HasResult`] where the result came first; [`VoidError::NotDue`] where an earlier
    /// command has no ending yet.
    pub async fn void(
        &self,
        stream: &Stream,
        id: &CommandId,
        note: &VoidNote,
    ) -> Result<Voided, VoidError> {
        for _ in 0..Self::TRIES {
            let tried =
                self.store.void(stream, id, note).await?.ok_or(VoidError::UnknownCommand)?;
            if let Some(voided) = tried.voided {
                self.announcer.announce(stream, News::Done);
                return Ok(voided);
            }
            if tried.has_result {
                return Err(VoidError::HasResult);
            }
            // At or below the progress it has an ending, and exactly above it this one was due: in
            // both cases the progress moved under the statement.
            if tried.seq.get() > tried.done_seq.get() + 1 {
                return Err(VoidError::NotDue { done_seq: tried.done_seq });
            }
        }
        Err(VoidError::Contended)
    }
}

/// Whether another caller cancelled the same command at the same moment.
fn lost_race(error: &ReadError) -> bool {
    matches!(
        error,
        ReadError::Database(DatabaseError::UniqueViolation { constraint })
            if constraint == "command_cancel_pkey"
    )
}
