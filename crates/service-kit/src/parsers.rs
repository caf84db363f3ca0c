//! What reads bytes from outside and is not public for services: for tests without a connection. No
//! promise is made to anybody else.

pub use crate::stream_guard::framing::{BodyEnd, Head, head};

/// Whether a content type is JSON in UTF-8.
#[must_use]
pub fn is_json(content_type: &str) -> bool {
    crate::body::is_json(content_type)
}
