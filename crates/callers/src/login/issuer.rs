//! Who signs the tokens, and whom they are for.

use std::fmt;

use http::uri::PathAndQuery;
use https_client::Origin;
use url::Url;

/// What an issuer's path is followed by (OpenID Connect Discovery 1.0, section 4).
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// The longest issuer and audience, in bytes.
const LONGEST: usize = 255;

/// An issuer: an `https` URL without a query, in the one spelling that its tokens have as their `iss`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    text: String,
    origin: Origin,
    discovery: String,
}

/// Why a text is no issuer. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerError {
    /// It can't be read as a URL with a host and a path, or is too long.
    #[error("not a URL of the form https://host[:port][/path], of at most {LONGEST} characters")]
    NotAUrl,
    /// Plain HTTP or another scheme.
    #[error("the scheme must be https")]
    NotHttps,
    /// A user name or a password stands before the host.
    #[error("user information is not allowed")]
    UserInfo,
    /// A query or a fragment, be it empty.
    #[error("a query or a fragment is not allowed")]
    QueryOrFragment,
    /// It is the URL, in another spelling than the one in which issuers name themselves.
    #[error(
        "the URL must be in its normal spelling: lower-case host, no default port, no dots in the path"
    )]
    NotNormal,
}

impl Issuer {
    /// Reads an issuer. A slash at its end belongs to it: with and without are two issuers.
    ///
    /// # Errors
    ///
    /// [`IssuerError`].
    pub fn parse(text: &str) -> Result<Self, IssuerError> {
        if text.len() > LONGEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(IssuerError::NotAUrl);
        }
        let url = Url::parse(text).map_err(|_| IssuerError::NotAUrl)?;
        if url.scheme() != "https" {
            return Err(IssuerError::NotHttps);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(IssuerError::QueryOrFragment);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(IssuerError::UserInfo);
        }
        let is_normal = url.as_str() == text || url.as_str().strip_suffix('/') == Some(text);
        if !is_normal {
            return Err(IssuerError::NotNormal);
        }
        let origin = origin(&url).ok_or(IssuerError::NotAUrl)?;
        let path = url.path().strip_suffix('/').unwrap_or(url.path());
        let discovery = format!("{path}{WELL_KNOWN}");
        if discovery.parse::<PathAndQuery>().is_err() {
            return Err(IssuerError::NotAUrl);
        }
        Ok(Self { text: text.to_owned(), origin, discovery })
    }

    /// The issuer as its tokens name it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where it answers: its documents come from nowhere else.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The path of its discovery document.
    #[must_use]
    pub fn discovery_path(&self) -> &str {
        &self.discovery
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Scheme, host and port of a URL.
pub(super) fn origin(url: &Url) -> Option<Origin> {
    Origin::parse(&url.origin().ascii_serialization()).ok()
}

/// Us, as the issuer's tokens name us: 1 to 255 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audience(String);

/// A text that is no audience. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an audience is 1 to {LONGEST} visible ASCII characters")]
pub struct NotAnAudience;

impl Audience {
    /// Takes a text that is an audience.
    ///
    /// # Errors
    ///
    /// [`NotAnAudience`].
    pub fn parse(text: &str) -> Result<Self, NotAnAudience> {
        let good =
            (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if good { Ok(Self(text.to_owned())) } else { Err(NotAnAudience) }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
