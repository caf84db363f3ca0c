//! From the errors of the contexts to problems: one exhaustive match for each. A database that does
//! not answer raises its alarm here; `watch.rs` clears it.

use chrono::{DateTime, SecondsFormat, Utc};
use database::DatabaseError;
use service_kit::ProblemReply;
use site_coordination::{
    OpenSessionError, PollError, ReadError, StoreOutputError, StoreResultError,
};
use site_protocol::{Code, FieldError};

use crate::state::State;

/// Why a poll has no page.
pub(crate) fn poll(state: &State, error: PollError) -> ProblemReply {
    let detail = error.to_string();
    match error {
        PollError::CursorAhead { last_seq } => {
            ProblemReply::new(Code::CursorAhead, detail).with("lastSeq", last_seq.to_u64())
        }
        PollError::CursorTrimmed { after, digest } => {
            ProblemReply::new(Code::CursorTrimmed, detail)
                .with("after", after.to_u64())
                .with("afterDigest", digest.to_string())
        }
        PollError::HistoryDiverged => ProblemReply::new(Code::HistoryDiverged, detail),
        PollError::StaleGeneration { current } => {
            ProblemReply::new(Code::StaleGeneration, detail).with("generation", current.get())
        }
        PollError::Read(error) => read(state, error),
    }
}

/// Why a session was not opened.
pub(crate) fn open_session(state: &State, error: OpenSessionError) -> ProblemReply {
    let detail = error.to_string();
    match error {
        OpenSessionError::StaleGeneration { current } => {
            ProblemReply::new(Code::StaleGeneration, detail).with("generation", current.get())
        }
        OpenSessionError::Superseded { current } => {
            ProblemReply::new(Code::SessionSuperseded, detail).with("generation", current.get())
        }
        OpenSessionError::Contended => ProblemReply::new(Code::Overloaded, detail),
        OpenSessionError::Read(error) => read(state, error),
    }
}

/// Why a result was not stored.
pub(crate) fn store_result(state: &State, error: StoreResultError) -> ProblemReply {
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
        StoreResultError::AlreadyVoided { at } => already_voided(at, detail),
        StoreResultError::OutputMissing => ProblemReply::new(Code::OutputMissing, detail),
        StoreResultError::Contended => ProblemReply::new(Code::Overloaded, detail),
        StoreResultError::Read(error) => read(state, error),
    }
}

/// Why a private output was not stored.
pub(crate) fn store_output(state: &State, error: StoreOutputError) -> ProblemReply {
    let detail = error.to_string();
    match error {
        StoreOutputError::DigestMismatch => wrong_field("digest", detail),
        StoreOutputError::UnknownCommand => ProblemReply::new(Code::NotFound, detail),
        StoreOutputError::NoRun => wrong_field("commandId", detail),
        StoreOutputError::Conflict { stored } => {
            ProblemReply::new(Code::ResultConflict, detail).with("storedDigest", stored.to_string())
        }
        StoreOutputError::AlreadyVoided { at } => already_voided(at, detail),
        StoreOutputError::StaleGeneration { current } => {
            ProblemReply::new(Code::StaleGeneration, detail).with("generation", current.get())
        }
        StoreOutputError::HistoryDiverged { current } => {
            ProblemReply::new(Code::HistoryDiverged, detail).with("generation", current.get())
        }
        StoreOutputError::PredecessorMissing { done_seq } => {
            ProblemReply::new(Code::PredecessorMissing, detail).with("doneSeq", done_seq.to_u64())
        }
        StoreOutputError::TooMany { limit } => {
            ProblemReply::new(Code::TooManyOutputs, detail).with("limit", limit)
        }
        StoreOutputError::Contended => ProblemReply::new(Code::Overloaded, detail),
        StoreOutputError::Read(error) => read(state, error),
    }
}

fn wrong_field(field: &str, detail: String) -> ProblemReply {
    let field = FieldError { field: field.to_owned(), detail: detail.clone() };
    ProblemReply::new(Code::InvalidRequest, detail).fields(vec![field])
}

fn already_voided(at: DateTime<Utc>, detail: String) -> ProblemReply {
    let at = at.to_rfc3339_opts(SecondsFormat::Micros, true);
    ProblemReply::new(Code::AlreadyVoided, detail).with("voidedAt", at)
}

/// Why the database gave no answer, or a wrong one.
pub(crate) fn read(state: &State, error: ReadError) -> ProblemReply {
    if let ReadError::Database(error @ DatabaseError::Unavailable(_)) = error {
        state.database_failed(error.to_string());
        let detail = "the database does not answer; try again";
        return ProblemReply::new(Code::DatabaseUnavailable, detail).because(error);
    }
    match error {
        ReadError::Database(error) => ProblemReply::internal(error),
        error @ ReadError::Corrupt(_) => ProblemReply::internal(error),
    }
}
