//! Ids of requests: the caller's where it gives a usable one, else ours.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderMap, HeaderName, HeaderValue};
use ring::rand::SecureRandom;

/// The header that carries the id, in the request and in the answer.
pub const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken over from a caller, in bytes.
const LONGEST: usize = 64;

/// The id of one request: 1 to 64 characters of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

/// Gives ids that don't repeat: a random number for the process and a counter.
///
/// They identify, they don't authorise: somebody who has seen one can guess the next.
pub struct RequestIds {
    process: u64,
    next: AtomicU64,
}

/// The random source failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the random source failed")]
pub struct NoRandomness;

impl RequestIds {
    /// Draws the number of this process.
    ///
    /// # Errors
    ///
    /// When the random source fails.
    pub fn new(random: &dyn SecureRandom) -> Result<Self, NoRandomness> {
        let mut bytes = [0; 8];
        random.fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self { process: u64::from_be_bytes(bytes), next: AtomicU64::new(1) })
    }

    /// The id of a request with these headers: its own where it has exactly one well-formed.
    pub(crate) fn of(&self, headers: &HeaderMap) -> RequestId {
        let mut given = headers.get_all(REQUEST_ID_HEADER).iter();
        match (given.next(), given.next()) {
            (Some(value), None) => RequestId::parse(value).unwrap_or_else(|| self.fresh()),
            _ => self.fresh(),
        }
    }

    pub(crate) fn fresh(&self) -> RequestId {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        RequestId(format!("{:016x}-{number:x}", self.process).into())
    }
}

impl RequestId {
    /// The id as it stands in headers, problems and the log.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }

    /// Takes the id that a caller gave, where it is well-formed.
    #[must_use]
    pub fn parse(value: &HeaderValue) -> Option<Self> {
        let text = value.to_str().ok()?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let good = (1..=LONGEST).contains(&text.len()) && text.bytes().all(allowed);
        good.then(|| Self(text.into()))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
