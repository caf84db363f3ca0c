//! What reads bytes from outside, for tests without files and a broker. No promise is made to
//! anybody else.

use crate::{BrokerUrl, Trust, TrustError};

/// The host and the port of a broker.
#[must_use]
pub fn place(url: &BrokerUrl) -> (&str, u16) {
    (url.host(), url.port())
}

/// What a PEM file vouches for.
///
/// # Errors
///
/// As [`Trust::from_pem_file`].
pub fn trust(text: &[u8]) -> Result<Trust, TrustError> {
    Trust::from_pem(text)
}
