//! The address and credential of one role.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use url::Url;

/// A PostgreSQL URL, `postgresql://role:password@host:port/database?…`.
///
/// `sslmode=verify-full` is the default and needs `sslrootcert`, a PEM file; `sslmode=disable` has
/// to be written out. Other modes encrypt without saying to whom, so they are refused. The
/// password is never printed.
#[derive(Clone)]
pub struct DatabaseUrl {
    pub(crate) config: tokio_postgres::Config,
    pub(crate) root_certificates: Option<PathBuf>,
}

/// Why a text is no [`DatabaseUrl`]. Never repeats the text: it holds a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.reason())]
pub enum DatabaseUrlError {
    /// No URL, or another scheme than `postgresql` or `postgres`.
    Scheme,
    /// No role is named.
    Role,
    /// No host is named.
    Host,
    /// No database is named, or one that would have to be percent-encoded.
    Database,
    /// A mode that encrypts without verifying the server.
    SslMode,
    /// `verify-full` without the certificates to verify with.
    RootCertificates,
    /// Another parameter than those that a URL may have here, one of them twice, a fragment, or one
    /// that the driver refuses.
    Parameter,
}

impl DatabaseUrlError {
    /// The reason as a fixed text, fit for a report about settings.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Scheme => "is no postgresql:// URL",
            Self::Role => "names no role",
            Self::Host => "names no host",
            Self::Database => "names no database, or one whose / or @ is not written %2F or %40",
            Self::SslMode => "has another sslmode than verify-full (the default) and disable",
            Self::RootCertificates => "needs sslrootcert, a PEM file, for sslmode=verify-full",
            Self::Parameter => {
                "has another parameter than sslmode, sslrootcert and hostaddr, a wrong one, or a # \
                 that is not written %23"
            }
        }
    }
}

impl DatabaseUrl {
    /// How long the server may take from the first packet to its consent.
    pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
    /// How long sent bytes may stay unacknowledged before the connection counts as dead, and how long
    /// it may be silent before it is asked whether it is there.
    const UNACKNOWLEDGED: Duration = Duration::from_secs(15);
    /// When it is asked again. Linux looks only then whether the time for the first answer is over, so
    /// that its own 75 s would make a minute and a half of it.
    const ASKED_AGAIN: Duration = Duration::from_secs(5);

    /// The role that the URL names.
    #[must_use]
    pub fn role(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    /// The same URL for a process that PostgreSQL shows as `name`, with a `statement_timeout`.
    #[must_use]
    pub(crate) fn for_process(&self, name: &str, statement_timeout: Duration) -> Self {
        let mut config = self.config.clone();
        // The statements rely on the level, their callers on the disk; neither is left to the
        // defaults of a database or a role. No statement runs long enough to be worth compiling, and
        // none is better for a plan of its own: that costs more than its run. A table that was small
        // when a plan was made can be large when it is used, so a plan uses an index where there is one.
        config.application_name(name).options(format!(
            "-c statement_timeout={0} -c idle_in_transaction_session_timeout={0} \
             -c default_transaction_isolation=read\\ committed -c synchronous_commit=on -c jit=off \
             -c plan_cache_mode=force_generic_plan -c enable_seqscan=off",
            statement_timeout.as_millis()
        ));
        Self { config, root_certificates: self.root_certificates.clone() }
    }
}

impl FromStr for DatabaseUrl {
    type Err = DatabaseUrlError;

    fn from_str(text: &str) -> Result<Self, DatabaseUrlError> {
        let mut url = Url::parse(text).map_err(|_| DatabaseUrlError::Scheme)?;
        if !matches!(url.scheme(), "postgresql" | "postgres") {
            return Err(DatabaseUrlError::Scheme);
        }
        // The driver has a reader of its own, which takes a fragment for a part of the name, or for
        // parameters, and what stands before an `@` of the path for the role.
        if url.fragment().is_some() {
            return Err(DatabaseUrlError::Parameter);
        }
        if url.path().strip_prefix('/').is_some_and(|name| name.contains(['/', '@'])) {
            return Err(DatabaseUrlError::Database);
        }
        let mut names: Vec<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(DatabaseUrlError::Parameter);
        }
        let (mut mode, mut root) = (None, None);
        let others: Vec<(String, String)> = url
            .query_pairs()
            .into_owned()
            .filter(|(name, value)| match name.as_str() {
                "sslmode" => {
                    mode = Some(value.clone());
                    false
                }
                "sslrootcert" => {
                    root = Some(PathBuf::from(value));
                    false
                }
                _ => true,
            })
            .collect();
        // The driver would let a parameter replace the role, the password or the host before it.
        if others.iter().any(|(name, _)| name != "hostaddr") {
            return Err(DatabaseUrlError::Parameter);
        }
        url.set_query(None);
        if !others.is_empty() {
            url.query_pairs_mut().extend_pairs(others);
        }
        let root_certificates = match mode.as_deref() {
            None | Some("verify-full") => Some(root.ok_or(DatabaseUrlError::RootCertificates)?),
            Some("disable") => None,
            Some(_) => return Err(DatabaseUrlError::SslMode),
        };
        let mut config: tokio_postgres::Config =
            url.as_str().parse().map_err(|_| DatabaseUrlError::Parameter)?;
        for (missing, error) in [
            (config.get_user().is_none_or(str::is_empty), DatabaseUrlError::Role),
            (config.get_hosts().is_empty(), DatabaseUrlError::Host),
            (config.get_dbname().is_none_or(str::is_empty), DatabaseUrlError::Database),
        ] {
            if missing {
                return Err(error);
            }
        }
        config
            .connect_timeout(Self::CONNECT_TIMEOUT)
            .tcp_user_timeout(Self::UNACKNOWLEDGED)
            .keepalives_idle(Self::UNACKNOWLEDGED)
            .keepalives_interval(Self::ASKED_AGAIN)
            .keepalives_retries(2)
            .ssl_mode(if root_certificates.is_some() {
                tokio_postgres::config::SslMode::Require
            } else {
                tokio_postgres::config::SslMode::Disable
            });
        Ok(Self { config, root_certificates })
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseUrl").field("role", &self.role()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> DatabaseUrlError {
        text.parse::<DatabaseUrl>().unwrap_err()
    }

    #[test]
    fn the_server_is_verified_unless_the_url_says_otherwise() {
        let url: DatabaseUrl = "postgresql://r:p@h/d?sslrootcert=/ca.pem".parse().unwrap();
        assert_eq!(url.root_certificates, Some(PathBuf::from("/ca.pem")));
        let url: DatabaseUrl = "postgresql://r:p@h/d?sslmode=disable".parse().unwrap();
        assert_eq!(url.root_certificates, None);
        assert_eq!(refusal("postgresql://r:p@h/d"), DatabaseUrlError::RootCertificates);
        for mode in ["require", "prefer", "allow", "verify-ca", ""] {
            assert_eq!(
                refusal(&format!("postgresql://r:p@h/d?sslmode={mode}&sslrootcert=/ca.pem")),
                DatabaseUrlError::SslMode
            );
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(refusal("host=h user=r"), DatabaseUrlError::Scheme);
        assert_eq!(refusal("https://h/"), DatabaseUrlError::Scheme);
        assert_eq!(refusal("postgresql://h/d?sslmode=disable"), DatabaseUrlError::Role);
        assert_eq!(refusal("postgresql://r@h?sslmode=disable"), DatabaseUrlError::Database);
        assert_eq!(
            refusal("postgresql://r@h/d?sslmode=disable&nonsense=1"),
            DatabaseUrlError::Parameter
        );
    }

    #[test]
    fn a_parameter_replaces_neither_role_nor_password_nor_host() {
        for parameter in ["user", "password", "host", "port", "dbname", "options", "target"] {
            let url = format!("postgresql://r:p@h/d?sslmode=disable&{parameter}=other");
            assert_eq!(refusal(&url), DatabaseUrlError::Parameter, "{parameter}");
        }
    }

    #[test]
    fn what_the_driver_would_read_in_another_way_is_refused() {
        for (text, reason) in [
            ("postgresql://r:p@h/d?sslmode=disable#x", DatabaseUrlError::Parameter),
            ("postgresql://r:p@h/d?sslmode=disable#x?host=o", DatabaseUrlError::Parameter),
            (
                "postgresql://r@h/d?sslrootcert=/ca&sslmode=verify-full&sslmode=disable",
                DatabaseUrlError::Parameter,
            ),
            ("postgresql://h/r:p@o/d?sslmode=disable", DatabaseUrlError::Database),
            ("postgresql://r@h/d/e?sslmode=disable", DatabaseUrlError::Database),
        ] {
            assert_eq!(refusal(text), reason, "{text}");
        }
    }

    #[test]
    fn the_password_is_not_printed() {
        let url: DatabaseUrl = "postgresql://r:hunter2@h/d?sslmode=disable".parse().unwrap();
        assert_eq!(format!("{url:?}"), r#"DatabaseUrl { role: "r", .. }"#);
    }
}
