//! Problems (RFC 9457): what a refused request is answered with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The content type of a problem.
pub const PROBLEM_CONTENT_TYPE: &str = "application/problem+json";

/// The value of [`Problem::source`] in answers of the Site API itself, to tell them from those of
/// a gateway on the way.
pub const PROBLEM_SOURCE: &str = "site-api";

/// An RFC 9457 problem with our members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
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
    /// The word of a [`crate::Code`], or of a newer server's.
    pub code: String,
    /// Whether the same request may succeed later without a change.
    pub retryable: bool,
    /// When to try again, in milliseconds; absent where there is no advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retry_after_ms: Option<u64>,
    /// The request's id, as in the header `x-request-id` and in the log.
    #[serde(default)]
    pub request_id: String,
    /// `site-api`: [`PROBLEM_SOURCE`].
    #[serde(default)]
    pub source: String,
    /// What is wrong with each field, for `invalid_request`.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::object::list"
    )]
    pub fields: Vec<FieldError>,
    /// The members that belong to a single code, such as `storedDigest`.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extra: Map<String, Value>,
}

/// One wrong field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    fn a_problem_of_a_newer_server_is_read() {
        let text = r#"{"type":"urn:x","title":"T","status":409,"detail":"d","code":"new_code",
            "retryable":false,"storedDigest":"ab","later":[1]}"#;
        let problem: Problem = serde_json::from_str(text).unwrap();
        assert_eq!(problem.code, "new_code");
        assert_eq!(problem.extra["storedDigest"], "ab");
    }
}
