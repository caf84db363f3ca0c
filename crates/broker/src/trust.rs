//! The certificate authorities that may vouch for the broker.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// What a broker's certificate is verified with. The system's own roots are not used.
#[derive(Clone, Debug)]
pub struct Trust(pub(crate) Arc<ClientConfig>);

/// Why a file can't vouch for anything.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file can't be read.
    #[error("the CA file can't be read")]
    Read(#[source] std::io::Error),
    /// It is not PEM. The reader's own words are left out: they quote a line, and the file that is
    /// named by mistake may hold a key.
    #[error("the CA file can't be read as PEM")]
    Pem,
    /// A certificate in it can't be trusted, or no protocol version is left.
    #[error("a certificate of the CA file is not usable")]
    Certificate(#[source] rustls::Error),
    /// There is no certificate in it.
    #[error("the CA file holds no certificate")]
    Empty,
}

impl Trust {
    /// Reads every certificate of a PEM file as a trust root.
    ///
    /// # Errors
    ///
    /// When the file holds none, or one that is not usable.
    pub fn from_pem_file(path: &Path) -> Result<Self, TrustError> {
        let text = std::fs::read(path);
        Self::from_pem(&text.map_err(TrustError::Read)?)
    }

    /// As [`Trust::from_pem_file`], of a file's content.
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text) {
            let certificate = certificate.map_err(|_| TrustError::Pem)?;
            roots.add(certificate).map_err(TrustError::Certificate)?;
        }
        if roots.is_empty() {
            return Err(TrustError::Empty);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TrustError::Certificate)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_vouches_only_with_usable_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        assert!(matches!(Trust::from_pem_file(&path), Err(TrustError::Read(_))));
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----MIGHAgEA\n").unwrap();
        assert!(matches!(Trust::from_pem_file(&path), Err(TrustError::Pem)));
        std::fs::write(&path, "nothing here\n").unwrap();
        assert!(matches!(Trust::from_pem_file(&path), Err(TrustError::Empty)));
        let good = rcgen::generate_simple_self_signed(["h".to_owned()]).unwrap().cert.pem();
        std::fs::write(&path, &good).unwrap();
        Trust::from_pem_file(&path).unwrap();
        let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(&path, good + bad).unwrap();
        assert!(matches!(Trust::from_pem_file(&path), Err(TrustError::Certificate(_))));
    }
}
