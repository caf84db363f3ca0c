//! The certificate authorities that may vouch for another side.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

/// The largest CA file that is read, in bytes: several hundred certificates.
const MAX_PEM_BYTES: usize = 1024 * 1024;

/// Why a file gives no trust roots.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// The file can't be read.
    #[error("the CA file can't be read")]
    Read(#[source] io::Error),
    /// More than 1 MiB.
    #[error("the CA file has more than {MAX_PEM_BYTES} bytes")]
    TooLong,
    /// Its PEM armour is broken. The reader's own words are left out: they quote a line, and the
    /// file that is named by mistake may hold a key.
    #[error("the CA file can't be read as PEM")]
    Pem,
    /// A certificate in the file is no certificate that can be trusted.
    #[error("certificate {number} of the CA file is not usable")]
    Certificate {
        /// Its place in the file, from 1.
        number: usize,
        /// What is wrong with it.
        #[source]
        source: rustls::Error,
    },
    /// There is no certificate in the file.
    #[error("the CA file holds no certificate")]
    Empty,
}

/// Reads every certificate of a PEM file as a trust root. The system's own roots are not used.
///
/// # Errors
///
/// [`RootsError`] when the file holds none, or one that is not usable.
pub fn roots_from_pem_file(path: &Path) -> Result<RootCertStore, RootsError> {
    roots_from_pem(&read_pem_file(path)?)
}

/// The content of a CA file, for who wants to know whether it changed.
///
/// # Errors
///
/// [`RootsError::Read`] and [`RootsError::TooLong`].
pub fn read_pem_file(path: &Path) -> Result<Vec<u8>, RootsError> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(RootsError::Read)?;
    file.take(MAX_PEM_BYTES as u64 + 1).read_to_end(&mut text).map_err(RootsError::Read)?;
    if text.len() > MAX_PEM_BYTES { Err(RootsError::TooLong) } else { Ok(text) }
}

/// As [`roots_from_pem_file`], of a file's content.
///
/// # Errors
///
/// Those of [`RootsError`] that are not about the file itself.
pub fn roots_from_pem(text: &[u8]) -> Result<RootCertStore, RootsError> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in CertificateDer::pem_slice_iter(text).enumerate() {
        let certificate = certificate.map_err(|_| RootsError::Pem)?;
        roots
            .add(certificate)
            .map_err(|source| RootsError::Certificate { number: index + 1, source })?;
    }
    if roots.is_empty() { Err(RootsError::Empty) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn each_certificate_of_the_file_is_a_root() {
        let one = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let two = rcgen::generate_simple_self_signed(["b.example".to_owned()]).unwrap();
        let (_folder, path) = file(&(one.cert.pem() + &two.cert.pem()));
        assert_eq!(roots_from_pem_file(&path).unwrap().len(), 2);
    }

    #[test]
    fn a_file_without_a_certificate_is_refused() {
        let (_folder, path) = file("nothing here\n");
        assert!(matches!(roots_from_pem_file(&path), Err(RootsError::Empty)));
        assert!(matches!(
            roots_from_pem_file(&path.with_extension("gone")),
            Err(RootsError::Read(_))
        ));
        let endless = roots_from_pem_file(std::path::Path::new("/dev/zero"));
        assert!(matches!(endless, Err(RootsError::TooLong)));
    }

    #[test]
    fn no_line_of_a_file_that_is_no_pem_is_quoted() {
        let key = "MIGHAgEAMBMGByqGSM49";
        for text in [
            format!("-----BEGIN PRIVATE KEY-----{key}-----END PRIVATE KEY-----\n"),
            format!("-----BEGIN {key}\n"),
        ] {
            let error = roots_from_pem(text.as_bytes()).unwrap_err();
            assert!(matches!(error, RootsError::Pem), "{error:?}");
            assert!(std::error::Error::source(&error).is_none());
        }
    }

    #[test]
    fn a_broken_certificate_is_named_by_its_place() {
        let good = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let (_folder, path) = file(&(good.cert.pem() + bad));
        let error = roots_from_pem_file(&path).unwrap_err();
        assert!(matches!(error, RootsError::Certificate { number: 2, .. }));
    }
}
