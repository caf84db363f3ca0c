//! A JWT, told apart by its form. A route knows whose it takes, and who can say whether it is one.

use std::{fmt, sync::Arc};

use secrecy::{ExposeSecret, SecretString};

/// The longest that is taken, in bytes: a request's head has no room for more.
const MOST_BYTES: usize = 16 * 1024;

/// A token of the form of a JWT: three parts in base64url with dots between them. Nothing in it was
/// verified. It can't be printed by accident, and is wiped when its last clone is dropped.
#[derive(Clone)]
pub struct Jwt(Arc<SecretString>);

impl Jwt {
    /// Takes a token of that form, of at most 16 KiB. `None` for any other.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let three = parts.by_ref().take(3).filter(|part| is_base64url(part)).count() == 3;
        let good = three && parts.next().is_none() && text.len() <= MOST_BYTES;
        good.then(|| Self(Arc::new(text.into())))
    }

    /// The token.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jwt")
    }
}

fn is_base64url(part: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !part.is_empty() && part.bytes().all(inside)
}
