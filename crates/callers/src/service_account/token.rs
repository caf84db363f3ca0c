//! The token of a ServiceAccount, told apart by its form. Only the cluster knows whether it is one.

use std::{fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};

use crate::grants::Entries;

/// The longest token that is taken, in bytes, as where an agent reads its own.
const MOST_BYTES: usize = 8 * 1024;

/// A token of the form of a JWT: three parts in base64url with dots between them. Nothing in it was
/// verified. It can't be printed by accident, and is wiped when its last clone is dropped.
#[derive(Clone)]
pub struct ServiceAccountToken(Arc<SecretString>);

impl ServiceAccountToken {
    /// Takes a token of that form, of at most 8 KiB. `None` for any other.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let three = parts.by_ref().take(3).filter(|part| is_base64url(part)).count() == 3;
        let good = three && parts.next().is_none() && text.len() <= MOST_BYTES;
        good.then(|| Self(Arc::new(text.into())))
    }

    /// The token, for the one request that asks the cluster about it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// When it says that it expires. Nobody has verified that: it is good for nothing but to remember
    /// the token for a shorter time. `None` where it says nothing that can be read.
    #[must_use]
    pub fn expires_at(&self) -> Option<DateTime<Utc>> {
        let claims = self.expose().split('.').nth(1)?;
        let claims = Zeroizing::new(URL_SAFE_NO_PAD.decode(claims).ok()?);
        let Entries(claims) = serde_json::from_slice(&claims).ok()?;
        let mut expiries = claims.into_iter().filter(|(name, _)| name == "exp");
        let (_, expiry) = expiries.next()?;
        if expiries.next().is_some() {
            return None;
        }
        DateTime::from_timestamp(serde_json::from_str(expiry.get()).ok()?, 0)
    }
}

impl fmt::Debug for ServiceAccountToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceAccountToken")
    }
}

fn is_base64url(part: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !part.is_empty() && part.bytes().all(inside)
}
