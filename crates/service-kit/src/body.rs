//! A request's body, within its size and time.
//!
//! The bytes are kept exactly as they came: a digest may be taken over them.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Body;
use site_protocol::Code;
use tokio::time::timeout;

use crate::{call::RequestBody, problem::ProblemReply};

/// What a body may take.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// The most bytes; 1 MiB by default.
    pub bytes: usize,
    /// The time from the first wait for it to its last byte; 30 s by default.
    pub deadline: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self { bytes: 1024 * 1024, deadline: Duration::from_secs(30) }
    }
}

/// Reads a body that must be `application/json` in UTF-8. That it *is* JSON is not checked here.
///
/// # Errors
///
/// 415 for another content type or an encoding, and those of [`read`].
pub async fn read_json(
    headers: &HeaderMap,
    body: RequestBody,
    limits: BodyLimits,
) -> Result<Bytes, ProblemReply> {
    require_type(headers, is_json, "the content type must be application/json in UTF-8")?;
    read(headers, body, limits).await
}

/// Reads a body that must be `application/octet-stream`: any bytes.
///
/// # Errors
///
/// 415 for another content type, and those of [`read`].
pub async fn read_octets(
    headers: &HeaderMap,
    body: RequestBody,
    limits: BodyLimits,
) -> Result<Bytes, ProblemReply> {
    let octets = |content_type: &str| content_type.eq_ignore_ascii_case("application/octet-stream");
    require_type(headers, octets, "the content type must be application/octet-stream")?;
    read(headers, body, limits).await
}

/// Reads a body of any content type.
///
/// # Errors
///
/// 413 `body_too_large` with `limitBytes` (at once where `Content-Length` tells it), 408
/// `request_timeout`, 415 for a `Content-Encoding`, 400 when the body breaks off.
pub async fn read(
    headers: &HeaderMap,
    body: RequestBody,
    limits: BodyLimits,
) -> Result<Bytes, ProblemReply> {
    require_identity(headers)?;
    if body.size_hint().lower() > limits.bytes as u64 {
        return Err(too_large(limits));
    }
    match timeout(limits.deadline, collect(body, limits)).await {
        Ok(read) => read,
        Err(_) => {
            let detail = format!("the body took longer than {:?}", limits.deadline);
            Err(ProblemReply::new(Code::RequestTimeout, detail))
        }
    }
}

async fn collect(mut body: RequestBody, limits: BodyLimits) -> Result<Bytes, ProblemReply> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            ProblemReply::new(Code::MalformedBody, "the body broke off").because(error)
        })?;
        // Trailers say nothing that we use.
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > limits.bytes - whole.len() {
            return Err(too_large(limits));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn too_large(limits: BodyLimits) -> ProblemReply {
    ProblemReply::new(Code::BodyTooLarge, format!("the body has more than {} bytes", limits.bytes))
        .with("limitBytes", limits.bytes)
}

fn require_identity(headers: &HeaderMap) -> Result<(), ProblemReply> {
    let identity =
        |value: &http::HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().all(identity) {
        Ok(())
    } else {
        let detail = "the body must come without a content encoding";
        Err(ProblemReply::new(Code::UnsupportedMediaType, detail))
    }
}

/// Takes exactly one content type, one that `fits`.
fn require_type(
    headers: &HeaderMap,
    fits: impl Fn(&str) -> bool,
    detail: &str,
) -> Result<(), ProblemReply> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let fits = match (types.next(), types.next()) {
        (Some(value), None) => value.to_str().is_ok_and(fits),
        _ => false,
    };
    if fits { Ok(()) } else { Err(ProblemReply::new(Code::UnsupportedMediaType, detail)) }
}

/// Whether a content type is `application/json`, with any parameters but a foreign `charset`.
pub(crate) fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    media.eq_ignore_ascii_case("application/json")
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}
