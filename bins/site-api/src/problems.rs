//! From the errors of the contexts to problems: one exhaustive match for each. A database that does
//! not answer raises its alarm here; `watch.rs` clears it.

use chrono::{DateTime, SecondsFormat, Utc};
use database::DatabaseError;
use execution_core::authority::Refusal;
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

/// Why there are no changes of SSH access.
pub(crate) fn ssh_changes(state: &State, error: ssh_access::ChangesError) -> ProblemReply {
    use ssh_access::ChangesError;
    let detail = error.to_string();
    match error {
        ChangesError::Compacted => ProblemReply::new(Code::CursorCompacted, detail),
        ChangesError::Unknown => ProblemReply::new(Code::CursorUnknown, detail),
        ChangesError::Read(error) => ssh_read(state, error),
    }
}

/// Why an acknowledgement of SSH access was not stored.
pub(crate) fn ssh_acknowledge(state: &State, error: ssh_access::AcknowledgeError) -> ProblemReply {
    use ssh_access::AcknowledgeError;
    let detail = error.to_string();
    match error {
        AcknowledgeError::Compacted => ProblemReply::new(Code::CursorCompacted, detail),
        AcknowledgeError::Unknown => ProblemReply::new(Code::CursorUnknown, detail),
        AcknowledgeError::Contended => ProblemReply::new(Code::Overloaded, detail),
        AcknowledgeError::Read(error) => ssh_read(state, error),
    }
}

/// Why the database of SSH access gave no answer, or a wrong one.
pub(crate) fn ssh_read(state: &State, error: ssh_access::ReadError) -> ProblemReply {
    match error {
        ssh_access::ReadError::Database(error) => database(state, error),
        error @ ssh_access::ReadError::Corrupt(_) => ProblemReply::internal(error),
    }
}

/// Why the database gave no answer, or a wrong one.
pub(crate) fn read(state: &State, error: ReadError) -> ProblemReply {
    match error {
        ReadError::Database(error) => database(state, error),
        error @ ReadError::Corrupt(_) => ProblemReply::internal(error),
    }
}

/// Why a Run was not read.
pub(crate) fn runs(state: &State, error: execution_core::ReadError) -> ProblemReply {
    match error {
        execution_core::ReadError::Database(error) => database(state, error),
        error @ execution_core::ReadError::Corrupt(_) => ProblemReply::internal(error),
    }
}

/// Why a binding was not read.
pub(crate) fn bindings(state: &State, error: resource_provisioning::ReadError) -> ProblemReply {
    match error {
        resource_provisioning::ReadError::Database(error) => database(state, error),
        error @ resource_provisioning::ReadError::Corrupt(_) => ProblemReply::internal(error),
    }
}

/// Why a statement brought nothing.
pub(crate) fn database(state: &State, error: DatabaseError) -> ProblemReply {
    if let DatabaseError::Unavailable(_) = error {
        state.database_failed(error.to_string());
        let detail = "the database does not answer; try again";
        return ProblemReply::new(Code::DatabaseUnavailable, detail).because(error);
    }
    ProblemReply::internal(error)
}

/// Why an Attempt may not do something now.
pub(crate) fn refusal(refusal: Refusal) -> ProblemReply {
    let code = match refusal {
        Refusal::NotFound => return no_such_run(),
        Refusal::Cancelled => Code::RunCancelled,
        Refusal::AttemptUnknown => Code::AttemptUnknown,
        Refusal::AttemptNotLatest { latest } => {
            let problem = ProblemReply::new(Code::AttemptNotCurrent, refusal.to_string());
            return problem.with("latestAttempt", latest.get());
        }
        Refusal::AttemptFinal => Code::AttemptFinal,
        Refusal::DeadlinePassed => Code::DeadlinePassed,
        Refusal::BindingNotRetained => Code::BindingNotRetained,
        Refusal::Denied => Code::PermissionDenied,
        Refusal::CouldNotAsk => Code::AuthorityUnavailable,
    };
    ProblemReply::new(code, refusal.to_string())
}

/// That nobody knows whether a member has a permission.
pub(crate) fn could_not_ask() -> ProblemReply {
    refusal(Refusal::CouldNotAsk)
}

/// The one answer about a Run that is nowhere, at another place, or whose id can't be one.
pub(crate) fn no_such_run() -> ProblemReply {
    ProblemReply::new(Code::NotFound, Refusal::NotFound.to_string())
}
