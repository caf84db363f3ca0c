//! Refusals as problems (RFC 9457).
//!
//! A handler ends in a [`ProblemReply`]; [`crate::Service`] fills in the request id, logs the cause
//! once and answers. Which failure becomes which code is the binary's to decide.

use std::{error::Error, fmt, time::Duration};

use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};
use site_protocol::{Code, FieldError, PROBLEM_CONTENT_TYPE, PROBLEM_SOURCE, Problem};

use crate::{call::Response, telemetry::error_chain};

/// The advice of a 503 that has no better one.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// The detail of every 401: the reason is nobody's business.
const UNAUTHENTICATED: &str = "a valid credential of the kind that this route takes is required";

/// A refusal on its way to the caller.
#[derive(Debug)]
pub struct ProblemReply(Box<Parts>);

#[derive(Debug)]
struct Parts {
    code: Code,
    detail: String,
    fields: Vec<FieldError>,
    retry_after: Option<Duration>,
    allow: Option<HeaderValue>,
    extra: Map<String, Value>,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl ProblemReply {
    /// A refusal with a sentence for a person: what happened, never a secret and never a body.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            code,
            detail: detail.into(),
            fields: Vec::new(),
            retry_after: (code.status() == 503).then_some(DEFAULT_RETRY_AFTER),
            allow: None,
            extra: Map::new(),
            cause: None,
        }))
    }

    /// The refusal of a caller without an accepted credential. `reason` is only logged: the body
    /// is the same for all of them.
    #[must_use]
    pub fn unauthenticated(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Code::Unauthenticated, UNAUTHENTICATED).because(reason)
    }

    /// A fault of ours. `cause` is only logged.
    #[must_use]
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Code::Internal, "the request failed; the log has the reason under its id")
            .because(cause)
    }

    /// Adds a member that belongs to the code, such as `storedDigest`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.extra.insert(key.to_owned(), value.into());
        self
    }

    /// Names the wrong fields.
    #[must_use]
    pub fn fields(mut self, fields: Vec<FieldError>) -> Self {
        self.0.fields = fields;
        self
    }

    /// Says when to try again. The header says whole seconds, rounded up and at least one; the
    /// body says milliseconds. Every 503 says one second where nothing else is said.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.0.retry_after = Some(after);
        self
    }

    /// Adds what goes to the log and nowhere else.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The sentence for a person.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The cause and its sources in one line, for the log.
    pub(crate) fn cause_chain(&self) -> Option<String> {
        self.0.cause.as_deref().map(|cause| error_chain(cause))
    }

    pub(crate) fn allow(mut self, methods: HeaderValue) -> Self {
        self.0.allow = Some(methods);
        self
    }

    /// The problem as it stands on the wire: as an answer's body, or as a part of one that holds
    /// several verdicts.
    #[must_use]
    pub fn to_problem(&self, request_id: &str) -> Problem {
        let Parts { code, detail, fields, retry_after, extra, .. } = &*self.0;
        let mut problem = Problem {
            kind: format!("urn:site-control:problem:{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.clone(),
            code: code.as_str().to_owned(),
            retryable: code.retryable(),
            retry_after_ms: retry_after
                .map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
            request_id: request_id.to_owned(),
            source: PROBLEM_SOURCE.to_owned(),
            fields: fields.clone(),
            extra: extra.clone(),
        };
        if *code == Code::Unauthenticated {
            UNAUTHENTICATED.clone_into(&mut problem.detail);
            problem.fields.clear();
            problem.extra.clear();
        }
        problem
    }

    pub(crate) fn into_response(self, request_id: &str) -> Response {
        // Strings, numbers and JSON values only: writing them to memory can't fail.
        let body = serde_json::to_vec(&self.to_problem(request_id)).unwrap_or_default();
        let Parts { code, retry_after, allow, .. } = *self.0;
        let mut response = Response::new(body.into());
        *response.status_mut() =
            StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_CONTENT_TYPE));
        if let Some(after) = retry_after {
            headers.insert(header::RETRY_AFTER, whole_seconds(after).into());
        }
        if code == Code::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(allow) = allow {
            headers.insert(header::ALLOW, allow);
        }
        response
    }
}

impl fmt::Display for ProblemReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.detail)
    }
}

fn whole_seconds(after: Duration) -> u64 {
    let up = u64::from(after.subsec_nanos() > 0);
    after.as_secs().saturating_add(up).max(1)
}
