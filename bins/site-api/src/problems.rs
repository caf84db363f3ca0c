//! From the errors of the contexts to problems: one exhaustive match for each.

use std::error::Error;

use database::DatabaseError;
use service_kit::ProblemReply;
use site_coordination::{PollError, ReadError, StoreResultError};
use site_protocol::Code;

use crate::state::{ALARM_DATABASE, State};

/// Why a poll has no page.
pub(crate) fn poll(error: PollError) -> ProblemReply {
    let detail = error.to_string();
    match error {
        PollError::CursorAhead { last_seq } => {
            ProblemReply::new(Code::CursorAhead, detail).with("lastSeq", last_seq.to_u64())
        }
        PollError::HistoryDiverged => ProblemReply::new(Code::HistoryDiverged, detail),
        PollError::StaleGeneration { current } => {
            ProblemReply::new(Code::StaleGeneration, detail).with("generation", current.get())
        }
        PollError::Read(error) => read(error),
    }
}

/// Why a result was not stored.
pub(crate) fn store_result(error: StoreResultError) -> ProblemReply {
    let detail = error.to_string();
    match error {
        StoreResultError::UnknownCommand => ProblemReply::new(Code::NotFound, detail),
        StoreResultError::Conflict { stored } => {
            ProblemReply::new(Code::ResultConflict, detail).with("storedDigest", stored.to_string())
        }
        StoreResultError::StaleGeneration { current } => {
            ProblemReply::new(Code::StaleGeneration, detail).with("generation", current.get())
        }
        StoreResultError::HistoryDiverged { current } => {
            ProblemReply::new(Code::HistoryDiverged, detail).with("generation", current.get())
        }
        StoreResultError::PredecessorMissing { done_seq } => {
            ProblemReply::new(Code::PredecessorMissing, detail).with("doneSeq", done_seq.to_u64())
        }
        StoreResultError::Contended => ProblemReply::new(Code::Overloaded, detail),
        StoreResultError::Read(error) => read(error),
    }
}

fn read(error: ReadError) -> ProblemReply {
    match error {
        ReadError::Database(error @ DatabaseError::Unavailable(_)) => {
            ProblemReply::new(Code::DatabaseUnavailable, "the database does not answer; try again")
                .because(error)
        }
        ReadError::Database(
            error @ (DatabaseError::UniqueViolation { .. } | DatabaseError::Refused(_)),
        ) => ProblemReply::internal(error),
        error @ ReadError::Corrupt(_) => ProblemReply::internal(error),
    }
}

/// Raises or clears the alarm of the database by the outcome of a call, and passes it on.
pub(crate) fn noted<T, E: Error + 'static>(state: &State, outcome: Result<T, E>) -> Result<T, E> {
    let unavailable = outcome.as_ref().err().and_then(unavailable);
    match unavailable {
        Some(error) => state.alarms.raise(ALARM_DATABASE, error.to_string()),
        None => state.alarms.clear(ALARM_DATABASE),
    }
    outcome
}

fn unavailable<E: Error + 'static>(error: &E) -> Option<&DatabaseError> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found @ DatabaseError::Unavailable(_)) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
