//! Which kind of credential a request presents.
//!
//! There is one way to present one: a single `Authorization: Bearer <token>`. Anything else is no
//! credential, whatever it may have meant.

use http::{HeaderMap, header};

use crate::{
    bearer::{NativeBearer, PREFIX},
    jwt::Jwt,
};

/// What a request presents, told apart by its form. Nothing is looked up yet.
#[derive(Debug)]
#[non_exhaustive]
pub enum Presented {
    /// A well-formed native bearer.
    NativeBearer(NativeBearer),
    /// A token of the form of a JWT: that of a ServiceAccount, or of a member who logged in. The
    /// route knows which it takes.
    Jwt(Jwt),
    /// A token of another form. A route that does not take it answers 401.
    Other,
}

/// Why a request presents nothing. For the log: the caller gets the same 401 for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unauthenticated {
    /// There is no `Authorization` header.
    #[error("no Authorization header")]
    Missing,
    /// There are several.
    #[error("more than one Authorization header")]
    Repeated,
    /// The scheme is not `Bearer`, or one space and a token of visible ASCII do not follow it.
    #[error("the Authorization header is not one bearer token")]
    NotABearer,
    /// It begins as a native bearer does and is none.
    #[error("a malformed native bearer")]
    MalformedNativeBearer,
}

/// Reads the `Authorization` header.
///
/// The scheme is compared without regard to case (RFC 9110, section 11.1). One space follows, then
/// the token: visible ASCII, no white space, nothing after it.
///
/// # Errors
///
/// [`Unauthenticated`], without any part of the header.
pub fn presented(headers: &HeaderMap) -> Result<Presented, Unauthenticated> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(Unauthenticated::Missing)?;
    if values.next().is_some() {
        return Err(Unauthenticated::Repeated);
    }
    let token = value
        .to_str()
        .ok()
        .and_then(|text| text.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token)
        .filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()))
        .ok_or(Unauthenticated::NotABearer)?;
    if token.starts_with(PREFIX) {
        let bearer =
            NativeBearer::parse(token).map_err(|_| Unauthenticated::MalformedNativeBearer)?;
        return Ok(Presented::NativeBearer(bearer));
    }
    Ok(Jwt::parse(token).map_or(Presented::Other, Presented::Jwt))
}
