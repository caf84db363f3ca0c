//! Opening one connection.

use std::sync::Arc;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection};
use errors::error_chain;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio_postgres::{NoTls, error::SqlState};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::DatabaseUrl;

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The certificates to verify the server with can't be read.
    #[error("the certificates in {path} can't be read: {reason}")]
    RootCertificates {
        /// The file of `sslrootcert`.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server answered and refused: a wrong password, role or database.
    #[error("the database refused the connection: {0}")]
    Refused(String),
    /// The server did not answer, is starting or stopping, or went away in the middle of a check.
    #[error("the database can't be reached: {0}")]
    Unreachable(String),
}

impl ConnectError {
    /// Why a statement of a check failed, where that is because its connection broke under it: this
    /// says nothing of the database, and the check has to be made again. The driver does not name the
    /// state in which a dying server says good-bye, so the connection is asked whether it still works.
    pub(crate) async fn broken(
        connection: &mut AsyncPgConnection,
        error: &diesel::result::Error,
    ) -> Option<Self> {
        let question = connection.batch_execute("SELECT 1");
        let answer = tokio::time::timeout(DatabaseUrl::CONNECT_TIMEOUT, question).await;
        (!matches!(answer, Ok(Ok(())))).then(|| Self::Unreachable(error.to_string()))
    }
}

impl DatabaseUrl {
    /// Opens one connection and drives it in a task of its own. The whole way, from the first
    /// packet to the server's consent, takes at most [`DatabaseUrl::CONNECT_TIMEOUT`].
    pub(crate) async fn connect(&self) -> Result<AsyncPgConnection, ConnectError> {
        tokio::time::timeout(Self::CONNECT_TIMEOUT, self.open()).await.unwrap_or_else(|_elapsed| {
            Err(ConnectError::Unreachable("it did not answer in time".to_owned()))
        })
    }

    async fn open(&self) -> Result<AsyncPgConnection, ConnectError> {
        match &self.root_certificates {
            None => {
                let (client, connection) = self.config.connect(NoTls).await.map_err(classify)?;
                AsyncPgConnection::try_from_client_and_connection(client, connection).await
            }
            Some(path) => {
                let tls = MakeRustlsConnect::new(tls_config(path)?);
                let (client, connection) = self.config.connect(tls).await.map_err(classify)?;
                AsyncPgConnection::try_from_client_and_connection(client, connection).await
            }
        }
        .map_err(|error| ConnectError::Unreachable(error.to_string()))
    }
}

fn tls_config(path: &std::path::Path) -> Result<ClientConfig, ConnectError> {
    let unreadable = |reason: String| ConnectError::RootCertificates {
        path: path.display().to_string(),
        reason,
    };
    let text = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    let roots = roots(&text).map_err(unreadable)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unreadable(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// The certificates of a PEM file, as trust roots. The reader's own words are left out of the reason:
/// they quote a line, and the file that is named by mistake may hold a key.
pub(crate) fn roots(text: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text) {
        let certificate = certificate.map_err(|_| "it is no PEM".to_owned())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("it holds no certificate".to_owned()) } else { Ok(roots) }
}

fn classify(error: tokio_postgres::Error) -> ConnectError {
    // The driver hides what matters in its source.
    let text = error_chain(&error);
    match error.code() {
        // Starting, stopping, out of connections: the server will take us later.
        Some(code) if code.code().starts_with("57") || *code == SqlState::TOO_MANY_CONNECTIONS => {
            ConnectError::Unreachable(text)
        }
        Some(_) => ConnectError::Refused(text),
        None => ConnectError::Unreachable(text),
    }
}
