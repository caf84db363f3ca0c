//! Certificates for tests: an authority of one's own and what it signs.
//!
//! Nothing here is kept or renewed; a production certificate is made by `site-admin tls issue` or
//! by cert-manager.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// A certificate authority that lives as long as the value.
pub struct TestCa {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key.
pub struct Issued {
    /// The certificate, PEM.
    pub cert_pem: String,
    /// Its private key, PKCS#8 PEM.
    pub key_pem: String,
}

impl TestCa {
    /// Makes an authority with a new key.
    #[expect(clippy::new_without_default, reason = "a key is made; nothing about it is a default")]
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Site Control test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, new_key())
            .expect("an authority's parameters are fixed and valid");
        Self { issuer }
    }

    /// The authority's certificate, PEM: what a client trusts.
    pub fn cert_pem(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a server certificate for DNS names and IP addresses.
    ///
    /// # Panics
    ///
    /// When a name is neither.
    pub fn issue(&self, names: &[&str]) -> Issued {
        self.sign(params(names))
    }

    /// As [`TestCa::issue`], of a certificate that expired with the year 2020.
    ///
    /// # Panics
    ///
    /// When a name is neither.
    pub fn issue_expired(&self, names: &[&str]) -> Issued {
        let mut params = params(names);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Issued {
        params.distinguished_name.push(DnType::CommonName, "Site Control test server");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = new_key();
        let cert = params.signed_by(&key, &self.issuer).expect("the authority may sign");
        Issued { cert_pem: cert.pem(), key_pem: key.serialize_pem() }
    }

    /// Writes the authority's certificate.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        fs::write(path, self.cert_pem())
    }
}

impl Issued {
    /// Writes both files; the key is readable by its owner only.
    ///
    /// # Errors
    ///
    /// When a file can't be written, or the key's is there already.
    pub fn write_to(&self, cert: &Path, key: &Path) -> io::Result<()> {
        fs::write(cert, &self.cert_pem)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(key)?;
        file.write_all(self.key_pem.as_bytes())
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).expect("a DNS name or an IP address")
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("ring makes P-256 keys")
}
