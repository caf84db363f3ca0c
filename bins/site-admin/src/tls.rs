//! `site-admin tls`: the certificate of the Site API.

mod issue;
mod show;

use std::{fs, io, path::Path};

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};

pub use show::certificate;

use crate::{Failure, manifest::Manifest, output::Format};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const CA: &str = "ca.crt";

#[derive(Subcommand)]
pub(crate) enum Tls {
    /// Make a private CA, sign one server certificate and discard the CA's key.
    ///
    /// Writes tls.crt, tls.key (mode 0600) and ca.crt. Existing material is never replaced.
    Issue(issue::Issue),
    /// Show whom the certificates of a folder name, until when, and their fingerprints.
    Show(show::Show),
}

/// What is printed for a cluster, in place of what is printed else.
#[derive(Args)]
struct Manifests {
    /// Print the Kubernetes Secret `site-api-tls` with the certificate and its key, for
    /// `kubectl create -f -`, which refuses where one exists. The key is then on standard output.
    #[arg(long)]
    secret: bool,
    /// Print the ConfigMap `site-api-trust` with the certificate of the CA as `ca.crt`. With
    /// --secret as well, both are printed.
    #[arg(long)]
    configmap: bool,
}

pub(crate) fn run(command: &Tls, format: Format, now: DateTime<Utc>) -> Result<(), Failure> {
    match command {
        Tls::Issue(arguments) => issue::run(arguments, format, now),
        Tls::Show(arguments) => show::run(arguments, format, now),
    }
}

impl Manifests {
    fn wanted(&self) -> bool {
        self.secret || self.configmap
    }

    /// Prints what is wanted of the material in a folder.
    fn print(&self, folder: &Path, namespace: Option<&str>, format: Format) -> Result<(), Failure> {
        let namespace = namespace.map(str::to_owned);
        if self.secret {
            let (certificate, key) = (read(folder, CERTIFICATE)?, read(folder, KEY)?);
            format.print(&Manifest::tls(certificate, key, namespace.clone()))?;
        }
        if self.configmap {
            format.print(&Manifest::trust(read(folder, CA)?, namespace))?;
        }
        Ok(())
    }
}

/// A file of PEM, which is ASCII.
fn read(folder: &Path, name: &str) -> Result<String, Failure> {
    let path = folder.join(name);
    let read = fs::read_to_string(&path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => Failure::data(format!("{}: it is no PEM", path.display())),
        _ => Failure::absent(format!("{}: {error}", path.display())),
    })?;
    if read.is_ascii() && read.contains("-----BEGIN ") {
        return Ok(read);
    }
    Err(Failure::data(format!("{}: it is no PEM", path.display())))
}
