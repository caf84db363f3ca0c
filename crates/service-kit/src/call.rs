//! A request as a handler gets it, and the answer that it gives.

use std::{error::Error, fmt};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header, request};
use http_body_util::combinators::UnsyncBoxBody;
use serde::Serialize;

use crate::{
    answer::AnswerBody, drain::Shutdown, problem::ProblemReply, request_id::RequestId,
    seats::SeatHandle,
};

/// The body of a request, not read yet. [`crate::body`] reads it within limits.
pub type RequestBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// An answer.
pub type Response = http::Response<AnswerBody>;

/// One request on its way through a handler.
pub struct Call {
    /// Method, target and headers.
    pub head: request::Parts,
    /// The body, not read yet.
    pub body: RequestBody,
    /// What the path's pattern matched.
    pub params: PathParams,
    /// The id under which the log has this request.
    pub request_id: RequestId,
    /// Whether the process is stopping. A handler that waits must wait for this as well.
    pub shutdown: Shutdown,
}

impl Call {
    /// Says that the caller is known and let in. While this request is under way its connection is
    /// not cut in favour of another, and afterwards only when no connection is left for whose
    /// caller nobody has said so; see [`crate::Limits::connections`].
    pub fn vouch(&self) {
        if let Some(seat) = self.head.extensions.get::<SeatHandle>() {
            seat.vouch();
        }
    }
}

/// The named parts of a path, exactly as they stand in it: nothing is percent-decoded.
#[derive(Clone, Default)]
pub struct PathParams(Vec<(String, String)>);

impl PathParams {
    /// The part that the pattern names `{name}`; empty when the pattern has no such part.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

impl<'k, 'v> FromIterator<(&'k str, &'v str)> for PathParams {
    fn from_iter<I: IntoIterator<Item = (&'k str, &'v str)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }
}

impl fmt::Debug for PathParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(key, value)| (key, value))).finish()
    }
}

/// An answer with a JSON body.
///
/// # Errors
///
/// An internal problem when `value` has no JSON form.
pub fn json(status: StatusCode, value: &impl Serialize) -> Result<Response, ProblemReply> {
    let body = serde_json::to_vec(value).map_err(ProblemReply::internal)?;
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}
