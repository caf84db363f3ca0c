//! Where the broker is, and who we are there.

use std::{fmt, str::FromStr};

use lapin::uri::{AMQPScheme, AMQPUri};
use url::Url;

/// A broker's URL, `amqps://user:password@host:port/vhost`.
///
/// Only `amqp` is plain text, and it has to be written out. Without a port it is 5671, or 5672 for
/// `amqp`; without a path the virtual host is `/`. The password is never printed.
#[derive(Clone)]
pub struct BrokerUrl {
    pub(crate) uri: AMQPUri,
}

/// Why a text is no [`BrokerUrl`]. Never repeats the text: it holds a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.reason())]
pub enum BrokerUrlError {
    /// No URL, or another scheme than `amqps` and `amqp`.
    Scheme,
    /// No user or no password.
    Credential,
    /// No host.
    Host,
    /// A parameter or a fragment.
    Parameter,
    /// A virtual host or a credential that can't be read.
    Encoding,
}

impl BrokerUrlError {
    /// The reason as a fixed text, fit for a report about settings.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Scheme => "is no amqps:// URL (nor an amqp:// one)",
            Self::Credential => "names no user or no password",
            Self::Host => "names no host",
            Self::Parameter => "has a parameter; none is understood",
            Self::Encoding => "has a virtual host, user or password that can't be read",
        }
    }
}

impl BrokerUrl {
    /// A peer that is silent for twice as long is gone.
    const HEARTBEAT_SECONDS: u16 = 20;

    /// Whether the connection is encrypted and the broker verified.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.uri.scheme == AMQPScheme::AMQPS
    }

    /// The broker's user.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.uri.authority.userinfo.username
    }

    /// The password, for who has to give it on. Never print it.
    #[must_use]
    pub fn expose_password(&self) -> &str {
        &self.uri.authority.userinfo.password
    }

    /// A name, or an address without brackets.
    pub(crate) fn host(&self) -> &str {
        &self.uri.authority.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.uri.authority.port
    }
}

impl FromStr for BrokerUrl {
    type Err = BrokerUrlError;

    fn from_str(text: &str) -> Result<Self, BrokerUrlError> {
        let url = Url::parse(text).map_err(|_| BrokerUrlError::Scheme)?;
        if !matches!(url.scheme(), "amqps" | "amqp") {
            return Err(BrokerUrlError::Scheme);
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(BrokerUrlError::Host)?;
        // The library would take `guest` for both.
        if url.username().is_empty() || url.password().is_none_or(str::is_empty) {
            return Err(BrokerUrlError::Credential);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BrokerUrlError::Parameter);
        }
        let mut uri: AMQPUri = text.parse().map_err(|_| BrokerUrlError::Encoding)?;
        // The library takes an IPv6 address for `localhost`.
        uri.authority.host = host.trim_matches(['[', ']']).to_owned();
        uri.query.heartbeat = Some(Self::HEARTBEAT_SECONDS);
        Ok(Self { uri })
    }
}

impl fmt::Debug for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerUrl").field("user", &self.user()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> BrokerUrl {
        text.parse().unwrap()
    }

    #[test]
    fn only_amqp_that_was_written_out_is_plain_text() {
        assert!(parsed("amqps://u:p@h").is_tls());
        assert!(!parsed("amqp://u:p@h").is_tls());
        for text in ["AMQPS://u:p@h", "amqps://u:p@h:5672", "amqps://u:p@h/v"] {
            assert!(parsed(text).is_tls(), "{text}");
        }
    }

    #[test]
    fn what_is_not_written_has_its_usual_value() {
        let url = parsed("amqps://u:p@h");
        assert_eq!((url.host(), url.port(), url.uri.vhost.as_str()), ("h", 5671, "/"));
        assert_eq!(parsed("amqp://u:p@h").port(), 5672);
        let url = parsed("amqps://u:p%40%2F@[::1]:1/site%2Fone");
        assert_eq!((url.host(), url.port(), url.uri.vhost.as_str()), ("::1", 1, "site/one"));
        assert_eq!(url.uri.authority.userinfo.password, "p@/");
    }

    #[test]
    fn what_is_missing_or_too_much_is_named() {
        let refusal = |text: &str| text.parse::<BrokerUrl>().unwrap_err();
        for text in ["", "h:5671", "http://u:p@h", "amqp+tls://u:p@h"] {
            assert_eq!(refusal(text), BrokerUrlError::Scheme, "{text}");
        }
        for text in ["amqps://h", "amqps://u@h", "amqps://:p@h", "amqps://u:@h"] {
            assert_eq!(refusal(text), BrokerUrlError::Credential, "{text}");
        }
        for text in
            ["amqps://u:p@h?heartbeat=0", "amqps://u:p@h?verify=verify_none", "amqps://u:p@h#x"]
        {
            assert_eq!(refusal(text), BrokerUrlError::Parameter, "{text}");
        }
    }

    #[test]
    fn the_password_is_not_printed() {
        let url = parsed("amqps://u:hunter2@h");
        assert_eq!(format!("{url:?}"), r#"BrokerUrl { user: "u", .. }"#);
        let refused = "amqps://u:hunter2@h?x=1".parse::<BrokerUrl>().unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("hunter2"));
    }
}
