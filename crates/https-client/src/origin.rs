//! Where another side is reached, without a path.

use std::fmt;

use http::Uri;
use rustls::pki_types::ServerName;
use url::Url;

/// `https://host[:port]`, the only form in which another side is named.
///
/// A client appends its paths itself, so a path here would be a mistake that shows only as a 404 much
/// later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

/// Why a text is no origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The text can't be read as a URL with a host.
    #[error("not a URL of the form https://host[:port]")]
    NotAUrl,
    /// The host is neither an address nor a name that a certificate can vouch for.
    #[error("the host is neither a DNS name nor an IP address")]
    Host,
    /// Plain HTTP or another scheme.
    #[error("the scheme must be https")]
    NotHttps,
    /// A user name or a password stands before the host.
    #[error("user information is not allowed")]
    UserInfo,
    /// A path other than `/`.
    #[error("a path is not allowed: the client appends its own")]
    Path,
    /// A query or a fragment, be it empty.
    #[error("a query or a fragment is not allowed")]
    QueryOrFragment,
}

impl Origin {
    /// Reads an origin. One slash after the host is accepted.
    ///
    /// # Errors
    ///
    /// [`OriginError`] says which part does not belong there.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
            return Err(OriginError::NotAUrl);
        }
        let url = Url::parse(text).map_err(|_| OriginError::NotAUrl)?;
        if url.scheme() != "https" {
            return Err(OriginError::NotHttps);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(OriginError::QueryOrFragment);
        }
        if text.contains('@') {
            return Err(OriginError::UserInfo);
        }
        if url.path() != "/" {
            return Err(OriginError::Path);
        }
        let host = url.host_str().ok_or(OriginError::NotAUrl)?;
        let origin = match url.port() {
            Some(0) => return Err(OriginError::NotAUrl),
            Some(port) => format!("https://{host}:{port}"),
            None => format!("https://{host}"),
        };
        // A URL takes more hosts than could ever be called.
        let named = ServerName::try_from(host.trim_matches(['[', ']'])).is_ok();
        if !named || origin.parse::<Uri>().is_err() {
            return Err(OriginError::Host);
        }
        Ok(Self(origin))
    }

    /// The origin as text, without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_are_kept_and_the_rest_is_normal() {
        for (text, origin) in [
            ("https://site.example.org", "https://site.example.org"),
            ("https://site.example.org/", "https://site.example.org"),
            ("https://Site.Example.org:443", "https://site.example.org"),
            ("https://127.0.0.1:8443", "https://127.0.0.1:8443"),
            ("https://[::1]:8443/", "https://[::1]:8443"),
        ] {
            assert_eq!(Origin::parse(text).map(|origin| origin.to_string()), Ok(origin.into()));
        }
    }

    #[test]
    fn everything_that_is_no_origin_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", OriginError::NotAUrl),
            ("site.example.org", OriginError::NotAUrl),
            ("https://", OriginError::NotAUrl),
            ("https://host:0", OriginError::NotAUrl),
            (" https://host", OriginError::NotAUrl),
            ("https://host\n", OriginError::NotAUrl),
            ("https:\\\\host", OriginError::NotAUrl),
            ("https://a\"b", OriginError::Host),
            ("https://a{b}", OriginError::Host),
            ("https://a~b", OriginError::Host),
            ("https://a..b", OriginError::Host),
            ("https://-a", OriginError::Host),
            ("http://host", OriginError::NotHttps),
            ("ftp://host", OriginError::NotHttps),
            ("https://user@host", OriginError::UserInfo),
            ("https://user:word@host", OriginError::UserInfo),
            ("https://@host", OriginError::UserInfo),
            ("https://host/v1", OriginError::Path),
            ("https://host//", OriginError::Path),
            ("https://host/v1/site/commands/", OriginError::Path),
            ("https://host?", OriginError::QueryOrFragment),
            ("https://host/?a=b", OriginError::QueryOrFragment),
            ("https://host#x", OriginError::QueryOrFragment),
        ] {
            assert_eq!(Origin::parse(text), Err(reason), "{text:?}");
        }
    }
}
