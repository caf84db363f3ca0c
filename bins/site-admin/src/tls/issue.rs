//! `site-admin tls issue`.

use std::{fmt, path::PathBuf};

use chrono::{DateTime, Datelike, TimeDelta, Utc};
use clap::Args;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::ServerName;
use serde::Serialize;

use super::Manifests;
use crate::{
    Failure,
    manifest::namespace,
    new_files::{NewFiles, make_folder},
    output::Format,
};

#[derive(Args)]
pub(crate) struct Issue {
    /// The folder for the three files; made when it is absent.
    #[arg(long)]
    directory: PathBuf,
    /// The Kubernetes namespace of the Service `site-api`; the certificate then has its four names.
    #[arg(long, required_unless_present = "name", value_parser = namespace)]
    namespace: Option<String>,
    /// A further DNS name or IP address of the certificate; may be given again.
    #[arg(long, value_parser = name)]
    name: Vec<String>,
    /// How long the certificate lives, in days.
    #[arg(long, default_value_t = 825, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    #[command(flatten)]
    manifests: Manifests,
}

pub(super) fn run(arguments: &Issue, format: Format, now: DateTime<Utc>) -> Result<(), Failure> {
    let files = ["tls.crt", "tls.key", "ca.crt"].map(|name| arguments.directory.join(name));
    // A dangling link counts as well.
    if let Some(existing) = files.iter().find(|file| file.symlink_metadata().is_ok()) {
        return Err(Failure::cannot_create(format!(
            "{} exists; existing material is never replaced",
            existing.display()
        )));
    }
    let material =
        sign(&names(arguments), now, arguments.days).map_err(|error| Failure::refused(&error))?;
    let [certificate, key, ca] = &files;
    make_folder(&arguments.directory)?;
    let mut made = NewFiles::default();
    made.write(key, &material.key, 0o600)?;
    made.write(ca, &material.ca, 0o644)?;
    made.write(certificate, &material.certificate, 0o644)?;
    made.keep();
    if arguments.manifests.wanted() {
        let namespace = arguments.namespace.as_deref();
        return arguments.manifests.print(&arguments.directory, namespace, format);
    }
    files.iter().try_for_each(|file| format.print(&Made { file: file.display().to_string() }))
}

/// A file that was made.
#[derive(Serialize)]
struct Made {
    file: String,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)
    }
}

/// The four names of the Service, then those that were asked for.
fn names(arguments: &Issue) -> Vec<String> {
    let service = arguments.namespace.iter().flat_map(|namespace| {
        [
            "site-api".to_owned(),
            format!("site-api.{namespace}"),
            format!("site-api.{namespace}.svc"),
            format!("site-api.{namespace}.svc.cluster.local"),
        ]
    });
    service.chain(arguments.name.iter().cloned()).collect()
}

/// Takes a name that a client can verify a server by.
fn name(text: &str) -> Result<String, &'static str> {
    match ServerName::try_from(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("it is neither a DNS name nor an IP address"),
    }
}

/// PEM texts of a certificate and of the CA that signed it, whose key is gone.
struct Material {
    certificate: String,
    key: String,
    ca: String,
}

fn sign(names: &[String], now: DateTime<Utc>, days: u32) -> Result<Material, rcgen::Error> {
    let mut ca = CertificateParams::new(Vec::<String>::new())?;
    ca.distinguished_name = common_name("Site Control private CA");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    valid(&mut ca, now, days);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

    let mut server = CertificateParams::new(names)?;
    server.distinguished_name = common_name("site-api");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    valid(&mut server, now, days);
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &ca)?;
    Ok(Material { certificate: certificate.pem(), key: key.serialize_pem(), ca: ca.pem() })
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// From the day before, for clocks that differ, until `days` from now.
fn valid(parameters: &mut CertificateParams, now: DateTime<Utc>, days: u32) {
    let day = |date: DateTime<Utc>| {
        // A month and a day of the month fit into a byte.
        let small = |number: u32| u8::try_from(number).unwrap_or(1);
        rcgen::date_time_ymd(date.year(), small(date.month()), small(date.day()))
    };
    parameters.not_before = day(now - TimeDelta::days(1));
    parameters.not_after = day(now + TimeDelta::days(i64::from(days)));
}
