//! The token of a ServiceAccount, told apart by its form. Only the cluster knows whether it is one.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use secrecy::zeroize::Zeroizing;
use serde::de::DeserializeOwned;

use super::ServiceAccount;
use crate::{grants::Entries, jwt::Jwt};

/// The longest token that is taken, in bytes, as where an agent reads its own.
const MOST_BYTES: usize = 8 * 1024;

/// A JWT that the cluster can be asked about. Nothing in it was verified. It can't be printed by
/// accident, and is wiped when its last clone is dropped.
#[derive(Clone)]
pub struct ServiceAccountToken(Jwt);

impl ServiceAccountToken {
    /// Takes a token of the form of a JWT, of at most 8 KiB. `None` for any other.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Jwt::parse(text).and_then(Self::of)
    }

    /// As [`ServiceAccountToken::parse`], of what has the form of a JWT.
    #[must_use]
    pub fn of(jwt: Jwt) -> Option<Self> {
        (jwt.expose().len() <= MOST_BYTES).then_some(Self(jwt))
    }

    /// The token, for the one request that asks the cluster about it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// When it says that it expires. Nobody has verified that: it is good for nothing but to remember
    /// the token for a shorter time. `None` where it says nothing that can be read.
    #[must_use]
    pub fn expires_at(&self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(self.claim("exp")?, 0)
    }

    /// Whose token it says that it is. Nobody has verified that, and anybody can say so of anybody: it
    /// is good for nothing but to choose where the token waits for its review. `None` where it names no
    /// ServiceAccount.
    #[must_use]
    pub fn claimed_account(&self) -> Option<ServiceAccount> {
        ServiceAccount::parse(&self.claim::<String>("sub")?).ok()
    }

    /// A claim of this type that is there once.
    fn claim<T: DeserializeOwned>(&self, wanted: &str) -> Option<T> {
        let claims = self.expose().split('.').nth(1)?;
        let claims = Zeroizing::new(URL_SAFE_NO_PAD.decode(claims).ok()?);
        let Entries(claims) = serde_json::from_slice(&claims).ok()?;
        let mut found = claims.into_iter().filter(|(name, _)| name == wanted);
        let (_, value) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        serde_json::from_str(value.get()).ok()
    }
}

impl fmt::Debug for ServiceAccountToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceAccountToken")
    }
}
