//! The TLS configuration of a listener: HTTP/1.1 only, no client certificates.

use std::{path::Path, sync::Arc};

use chrono::{DateTime, Utc};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};

/// Why a certificate and its key can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The certificate's file can't be read, or is not PEM.
    #[error("can't read the certificate")]
    Certificate(#[source] pem::Error),
    /// The file has no certificate in it.
    #[error("the certificate's file has no certificate")]
    NoCertificate,
    /// The key's file can't be read, or has no key in PEM.
    #[error("can't read the private key")]
    Key(#[source] pem::Error),
    /// The certificate and the key don't go together, or are of a kind that is not supported.
    #[error("the certificate and the key can't be used")]
    Pair(#[source] rustls::Error),
}

/// Reads a certificate chain and its private key from PEM files. TLS 1.2 and 1.3, and HTTP/1.1 to
/// clients that ask by ALPN; a client that asks only for something else is refused.
///
/// # Errors
///
/// When a file can't be read, or the two don't go together.
pub fn server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    server_config_of(certificate_chain(certificate)?, private_key(key)?)
}

/// As [`server_config`], of what was read by the two functions below: for a caller that tells the
/// mistakes of both files.
///
/// # Errors
///
/// When the two don't go together.
pub fn server_config_of(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Reads the certificates of a PEM file, in their order.
///
/// # Errors
///
/// When the file can't be read or holds none.
pub fn certificate_chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(TlsError::Certificate)?;
    if chain.is_empty() { Err(TlsError::NoCertificate) } else { Ok(chain) }
}

/// As [`certificate_chain`], of a file's content.
///
/// # Errors
///
/// When it is not PEM or holds no certificate.
pub fn certificate_chain_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(TlsError::Certificate)?;
    if chain.is_empty() { Err(TlsError::NoCertificate) } else { Ok(chain) }
}

/// Reads the first private key of a PEM file.
///
/// # Errors
///
/// When the file can't be read or holds none.
pub fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(file).map_err(TlsError::Key)
}

/// As [`private_key`], of a file's content.
///
/// # Errors
///
/// When it is not PEM or holds no key.
pub fn private_key_of(pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(TlsError::Key)
}

/// The time in which every certificate of a chain is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The latest beginning.
    pub not_before: DateTime<Utc>,
    /// The earliest end; at that second it is over.
    pub not_after: DateTime<Utc>,
}

/// When a chain is valid; `None` where it is empty or a certificate of it can't be parsed.
#[must_use]
pub fn validity(chain: &[CertificateDer<'_>]) -> Option<Validity> {
    let mut whole: Option<Validity> = None;
    for certificate in chain {
        let (_rest, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
        let parsed = parsed.validity();
        let time =
            |time: x509_parser::time::ASN1Time| DateTime::from_timestamp(time.timestamp(), 0);
        let (not_before, not_after) = (time(parsed.not_before)?, time(parsed.not_after)?);
        whole = Some(whole.map_or(Validity { not_before, not_after }, |whole| Validity {
            not_before: whole.not_before.max(not_before),
            not_after: whole.not_after.min(not_after),
        }));
    }
    whole
}

impl TlsError {
    /// What is wrong, for a person. The source's own words could quote a line of the key's file.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Certificate(pem::Error::Io(error)) | Self::Key(pem::Error::Io(error)) => {
                format!("{self}: {}", error.kind())
            }
            Self::Key(pem::Error::NoItemsFound) => format!("{self}: the file has no key"),
            Self::Certificate(_) | Self::Key(_) => format!("{self}: the file is not PEM"),
            Self::Pair(error) => format!("{self}: {error}"),
            Self::NoCertificate => self.to_string(),
        }
    }
}
