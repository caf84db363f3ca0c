//! Problems (RFC 9457): what a refused request is answered with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The content type of a problem.
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// The value of [`Problem::source`] in answers of the Site API itself, to tell them from those of
/// a gateway on the way.
pub const PROBLEM_SOURCE: &str = "site-api";

/// The stable code of a problem: the thing that a program matches on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The body is not JSON, or not the JSON object that the route takes.
    MalformedBody,
    /// The bytes are no HTTP/1.1 request. The connection is closed.
    MalformedRequest,
    /// Fields, query parameters or headers are missing, unknown or out of range.
    InvalidRequest,
    /// No accepted credential. One answer for all reasons.
    Unauthenticated,
    /// The caller belongs to another Site than the one of this listener.
    SiteMismatch,
    /// The caller is known and may not do this.
    Forbidden,
    /// Absent, or none of the caller's business.
    NotFound,
    /// The path exists, the method does not; `Allow` names those that do.
    MethodNotAllowed,
    /// The body did not arrive in time.
    RequestTimeout,
    /// Another result is stored for this command; `storedDigest` is its digest.
    ResultConflict,
    /// An earlier command of the stream has no result yet; `doneSeq` is the last that has.
    PredecessorMissing,
    /// A newer Runtime has taken the stream; `generation` is the current one.
    StaleGeneration,
    /// The session was superseded by a newer one; its id is refused for ever. `generation` is the
    /// current one.
    SessionSuperseded,
    /// The command was voided: it will have no result. `voidedAt` says when.
    AlreadyVoided,
    /// The result names a private output that was not stored before.
    OutputMissing,
    /// The command has as many private outputs as it may have; `limit` says how many.
    TooManyOutputs,
    /// The chain digest or the generation is not one of this stream: a database was restored.
    HistoryDiverged,
    /// The cursor is above the end of the stream; `lastSeq` is the end.
    CursorAhead,
    /// The commands after the cursor were removed by age. `after` and `afterDigest` are where to
    /// start again.
    CursorTrimmed,
    /// The body is larger than the limit; `limitBytes` names it.
    BodyTooLarge,
    /// The request's head is larger than the listener takes. The connection is closed.
    HeadTooLarge,
    /// The body's content type is not the one that the route takes.
    UnsupportedMediaType,
    /// Too many requests at once.
    Overloaded,
    /// The listener is stopping.
    Draining,
    /// Native bearers can't be checked: there is no usable grants file.
    BearersUnavailable,
    /// The database did not answer.
    DatabaseUnavailable,
    /// A fault of ours; the request id finds it in the log.
    Internal,
}

impl Code {
    /// Every code, in the order of their status.
    pub const ALL: &'static [Self] = &[
        Self::MalformedRequest,
        Self::MalformedBody,
        Self::Unauthenticated,
        Self::SiteMismatch,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::ResultConflict,
        Self::PredecessorMissing,
        Self::StaleGeneration,
        Self::SessionSuperseded,
        Self::AlreadyVoided,
        Self::OutputMissing,
        Self::TooManyOutputs,
        Self::HistoryDiverged,
        Self::CursorAhead,
        Self::CursorTrimmed,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::InvalidRequest,
        Self::HeadTooLarge,
        Self::Internal,
        Self::Overloaded,
        Self::Draining,
        Self::BearersUnavailable,
        Self::DatabaseUnavailable,
    ];

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The HTTP status that goes with it.
    #[must_use]
    pub fn status(self) -> u16 {
        self.row().1
    }

    /// The problem's title: the same for each occurrence.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().2
    }

    /// Whether the same request may succeed later without a change.
    #[must_use]
    pub fn retryable(self) -> bool {
        self.row().3
    }

    fn row(self) -> (&'static str, u16, &'static str, bool) {
        match self {
            Self::MalformedRequest => ("malformed_request", 400, "The request is malformed", false),
            Self::HeadTooLarge => ("head_too_large", 431, "The head is too large", false),
            Self::MalformedBody => ("malformed_body", 400, "The body is malformed", false),
            Self::InvalidRequest => ("invalid_request", 422, "The request is invalid", false),
            Self::Unauthenticated => ("unauthenticated", 401, "Not authenticated", false),
            Self::SiteMismatch => ("site_mismatch", 403, "Another Site", false),
            Self::Forbidden => ("forbidden", 403, "Not allowed", false),
            Self::NotFound => ("not_found", 404, "Not found", false),
            Self::MethodNotAllowed => ("method_not_allowed", 405, "Method not allowed", false),
            Self::RequestTimeout => ("request_timeout", 408, "The request took too long", true),
            Self::ResultConflict => ("result_conflict", 409, "Another result is stored", false),
            Self::PredecessorMissing => {
                ("predecessor_missing", 409, "An earlier result is missing", true)
            }
            Self::StaleGeneration => ("stale_generation", 409, "The stream was taken over", false),
            Self::SessionSuperseded => {
                ("session_superseded", 409, "The session was superseded", false)
            }
            Self::AlreadyVoided => ("already_voided", 409, "The command was voided", false),
            Self::OutputMissing => ("output_missing", 409, "The output is missing", false),
            Self::TooManyOutputs => ("too_many_outputs", 409, "Too many outputs", false),
            Self::CursorTrimmed => ("cursor_trimmed", 410, "The commands were removed", false),
            Self::HistoryDiverged => ("history_diverged", 409, "The history differs", false),
            Self::CursorAhead => ("cursor_ahead", 409, "The cursor is above the end", false),
            Self::BodyTooLarge => ("body_too_large", 413, "The body is too large", false),
            Self::UnsupportedMediaType => {
                ("unsupported_media_type", 415, "Unsupported content type", false)
            }
            Self::Internal => ("internal", 500, "Internal error", true),
            Self::Overloaded => ("overloaded", 503, "Too many requests", true),
            Self::Draining => ("draining", 503, "The listener is stopping", true),
            Self::BearersUnavailable => {
                ("bearers_unavailable", 503, "Native bearers can't be checked", true)
            }
            Self::DatabaseUnavailable => {
                ("database_unavailable", 503, "The database does not answer", true)
            }
        }
    }
}

/// An RFC 9457 problem with our members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// `urn:site-control:problem:<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The title of the code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time, for a person. Never a secret, never a body.
    pub detail: String,
    /// [`Code::as_str`], or the code of a newer server.
    pub code: String,
    /// Whether the same request may succeed later without a change.
    pub retryable: bool,
    /// When to try again, in milliseconds; absent where there is no advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The request's id, as in the header `x-request-id` and in the log.
    #[serde(default)]
    pub request_id: String,
    /// [`PROBLEM_SOURCE`].
    #[serde(default)]
    pub source: String,
    /// What is wrong with each field, for `invalid_request`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldError>,
    /// The members that belong to a single code, such as `storedDigest`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One wrong field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// The field, query parameter or header, as the request spells it.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_listed_once_under_its_own_word() {
        let mut words: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn a_problem_of_a_newer_server_is_read() {
        let text = r#"{"type":"urn:x","title":"T","status":409,"detail":"d","code":"new_code",
            "retryable":false,"storedDigest":"ab","later":[1]}"#;
        let problem: Problem = serde_json::from_str(text).unwrap();
        assert_eq!(problem.code, "new_code");
        assert_eq!(problem.extra["storedDigest"], "ab");
    }
}
