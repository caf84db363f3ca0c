//! `site-admin tls show`.

use std::{fmt, net::IpAddr, path::PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use ring::digest::{SHA256, digest};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde::Serialize;
use x509_parser::{
    certificate::X509Certificate, extensions::GeneralName, prelude::FromDer, time::ASN1Time,
};

use super::{CA, CERTIFICATE, Manifests, read};
use crate::{Failure, manifest::namespace, output::Format};

#[derive(Args)]
pub(crate) struct Show {
    /// The folder with tls.crt and ca.crt, as `tls issue` made them.
    #[arg(long)]
    directory: PathBuf,
    #[command(flatten)]
    manifests: Manifests,
    /// The namespace in the manifests; without it they name none.
    #[arg(long, value_parser = namespace)]
    namespace: Option<String>,
}

/// Shows each certificate of both files, or prints the manifests.
pub(super) fn run(arguments: &Show, format: Format, now: DateTime<Utc>) -> Result<(), Failure> {
    let folder = &arguments.directory;
    if arguments.manifests.wanted() {
        return arguments.manifests.print(folder, arguments.namespace.as_deref(), format);
    }
    for name in [CERTIFICATE, CA] {
        let text = read(folder, name)?;
        let file = folder.join(name).display().to_string();
        let wrong = |what: &str| Failure::data(format!("{file}: {what}"));
        let mut found = 0;
        for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
            let certificate = certificate.map_err(|_| wrong("it is no PEM"))?;
            let shown = Certificate::of(&file, &certificate, now);
            format
                .print(&shown.ok_or_else(|| wrong("it holds something that is no certificate"))?)?;
            found += 1;
        }
        if found == 0 {
            return Err(wrong("it holds no certificate"));
        }
    }
    Ok(())
}

/// What a certificate says.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Certificate {
    file: String,
    subject: String,
    issuer: String,
    /// The DNS names and addresses for which it vouches.
    names: Vec<String>,
    not_before: String,
    not_after: String,
    /// Whole days; negative where it has expired.
    days_left: i64,
    /// SHA-256 over the certificate, in lower-case hexadecimal.
    fingerprint: String,
}

impl Certificate {
    fn of(file: &str, der: &[u8], now: DateTime<Utc>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names = match certificate.subject_alternative_name().ok()? {
            None => Vec::new(),
            Some(names) => names.value.general_names.iter().map(name).collect(),
        };
        let validity = certificate.validity();
        let end = moment(validity.not_after)?;
        Some(Self {
            file: file.to_owned(),
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            names,
            not_before: time(moment(validity.not_before)?),
            not_after: time(end),
            days_left: (end - now).num_seconds().div_euclid(24 * 60 * 60),
            fingerprint: hex::encode(digest(&SHA256, der)),
        })
    }
}

/// What is shown of a certificate, for tests; `None` where it can't be read.
#[must_use]
pub fn certificate(der: &[u8], now: DateTime<Utc>) -> Option<String> {
    Certificate::of("tls.crt", der, now).map(|certificate| certificate.to_string())
}

fn name(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.map_or_else(|_| "an unreadable address".to_owned(), |ip| ip.to_string())
        }
        other => other.to_string(),
    }
}

fn moment(time: ASN1Time) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(time.timestamp(), 0)
}

fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = if self.names.is_empty() { "-".to_owned() } else { self.names.join(", ") };
        let left = match self.days_left {
            days if days < 0 => "EXPIRED".to_owned(),
            days => format!("{days} days left"),
        };
        writeln!(f, "{}", self.file)?;
        writeln!(f, "  subject      {}, issued by {}", self.subject, self.issuer)?;
        writeln!(f, "  names        {names}")?;
        writeln!(f, "  valid        {} to {} ({left})", self.not_before, self.not_after)?;
        write!(f, "  fingerprint  SHA-256 {}", self.fingerprint)
    }
}
