//! What the driver is told of a URL, for tests without a server. No promise is made to anybody else.

use tokio_postgres::config::Host;

use crate::DatabaseUrl;

/// How many certificates of a PEM file would vouch for a server.
///
/// # Errors
///
/// The reason that is told.
pub fn roots(text: &[u8]) -> Result<usize, String> {
    crate::connect::roots(text).map(|roots| roots.len())
}

/// What the driver is told. It has no `Debug`: it holds a password.
pub struct Told {
    /// The role.
    pub role: Vec<u8>,
    /// Its password.
    pub password: Option<Vec<u8>>,
    /// The hosts, or folders of sockets.
    pub hosts: Vec<String>,
    /// The database.
    pub database: Vec<u8>,
    /// Whether it has to verify the server.
    pub is_verified: bool,
}

/// What the driver is told of a URL.
#[must_use]
pub fn told(url: &DatabaseUrl) -> Told {
    let config = &url.config;
    let host = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    };
    Told {
        role: url.role().into(),
        password: config.get_password().map(<[u8]>::to_vec),
        hosts: config.get_hosts().iter().map(host).collect(),
        database: config.get_dbname().unwrap_or_default().into(),
        is_verified: url.root_certificates.is_some()
            && config.get_ssl_mode() == tokio_postgres::config::SslMode::Require,
    }
}
