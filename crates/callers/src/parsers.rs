//! What reads bytes from outside, for tests without an API server or an issuer. No promise is made to
//! anybody else.

use chrono::{DateTime, Utc};
use http::StatusCode;

use crate::{
    jwt::Jwt,
    login::{
        self, Audience, DiscoveryError, Issuer, KeysError, Login, LoginRefusal, Rules, SignedToken,
    },
    review::{self, Pod, ReviewError},
    service_account::ServiceAccount,
};

/// Who the sent token is, by an answer about it: the ServiceAccount, its uid, the Pod.
///
/// # Errors
///
/// As [`crate::review::Reviewer::review`].
pub fn verdict(
    status: StatusCode,
    body: &[u8],
    sent: &str,
    audience: &str,
) -> Result<(ServiceAccount, String, Pod), ReviewError> {
    let review::Identity { account, uid, pod } = review::verdict(status, body, sent, audience)?;
    Ok((account, uid, pod))
}

/// Who logged in, by a token and a set of keys, at `now`.
///
/// # Errors
///
/// The first rule that the token breaks.
///
/// # Panics
///
/// When the keys are none.
pub fn login(
    token: &Jwt,
    keys: &[u8],
    issuer: Issuer,
    audience: Audience,
    now: DateTime<Utc>,
) -> Result<Login, LoginRefusal> {
    let keys = login::Keys::read(keys).expect("a caller brings keys");
    let token = SignedToken::read(token)?;
    let login = token.claims.judge(&Rules { issuer, audience }, now)?;
    keys.verify(&token).map(|()| login)
}

/// The ids of the keys of a set that are of use.
///
/// # Errors
///
/// As [`crate::login::LoginVerifier::verify`].
pub fn login_keys(json: &[u8]) -> Result<Vec<String>, KeysError> {
    login::Keys::read(json).map(|keys| keys.ids().map(str::to_owned).collect())
}

/// The path of an issuer's keys, by its discovery document.
///
/// # Errors
///
/// As [`crate::login::LoginVerifier::verify`].
pub fn login_keys_path(document: &[u8], issuer: &Issuer) -> Result<String, DiscoveryError> {
    login::keys_path(document, issuer)
}
