//! What reads bytes from outside and is not public for services: for tests without a connection. No
//! promise is made to anybody else.

pub use crate::stream_guard::framing::{BodyEnd, Head, head};

/// How many bytes have come when a head that comes byte by byte is judged, where it is.
#[must_use]
pub fn judged_at(bytes: &[u8]) -> Option<usize> {
    let mut lines = crate::stream_guard::Lines::default();
    (1..=bytes.len()).find(|come| lines.are_to_be_judged(&bytes[..*come]))
}

/// Whether a content type is JSON in UTF-8.
#[must_use]
pub fn is_json(content_type: &str) -> bool {
    crate::body::is_json(content_type)
}
