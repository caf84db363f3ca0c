//! Reading an answer: bounded, and told apart from what a gateway on the way makes up.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use site_protocol::{Object, PROBLEM_CONTENT_TYPE, PROBLEM_SOURCE, Problem};

use crate::{BadAnswer, CallError};

/// The largest answer that is read, in bytes: well above a full page.
pub(crate) const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// A successful answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    body: Bytes,
}

impl Answer {
    /// Reads the body and sorts refusals out.
    pub(crate) async fn read(response: Response<Incoming>) -> Result<Self, CallError> {
        let (head, body) = response.into_parts();
        let body = match Limited::new(body, MAX_ANSWER_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                // A large page of a gateway is still first of all a refusal.
                success(head.status, &head.headers, &[])?;
                let limit_bytes = MAX_ANSWER_BYTES;
                return Err(CallError::BadAnswer(BadAnswer::TooLarge { limit_bytes }));
            }
            Err(error) => return Err(CallError::Transport(error)),
        };
        Self::of(head.status, &head.headers, body)
    }

    /// Takes what was read whole.
    pub(crate) fn of(
        status: StatusCode,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Self, CallError> {
        success(status, headers, &body)?;
        Ok(Self { status, body })
    }

    /// The body as the JSON object that the route answers with.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, CallError> {
        let read = serde_json::from_slice(&self.body).map(|Object(value)| value);
        read.map_err(|error| {
            // serde's own words would quote the body.
            let (line, column) = (error.line(), error.column());
            CallError::BadAnswer(BadAnswer::Json { line, column })
        })
    }
}

/// Nothing for 200 and 201, the only successes of the command routes; else the refusal.
fn success(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<(), CallError> {
    if matches!(status, StatusCode::OK | StatusCode::CREATED) {
        return Ok(());
    }
    Err(match problem(status, headers, body) {
        Some(problem) => CallError::Problem(Box::new(problem)),
        None => CallError::NotOurs { status: status.as_u16(), retry_after: retry_after(headers) },
    })
}

fn problem(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Option<Problem> {
    let content_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let media_type = content_type.split(';').next()?.trim();
    if !media_type.eq_ignore_ascii_case(PROBLEM_CONTENT_TYPE) {
        return None;
    }
    let problem: Problem = serde_json::from_slice(body).ok()?;
    (problem.source == PROBLEM_SOURCE && problem.status == status.as_u16()).then_some(problem)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
