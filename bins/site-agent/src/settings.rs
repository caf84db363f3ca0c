//! Where the Site API is and how it is reached, from the environment.

use std::{error::Error, path::Path};

use rustls::RootCertStore;
use service_kit::{Settings, error_chain};
use site_client::{Origin, TokenFile, roots_from_pem_file};

/// The connection of an agent.
pub(crate) struct Connection {
    /// The setting of the agent's role, such as `SITE_API_URL`.
    pub(crate) origin: Origin,
    /// The certificates of `SITE_API_CA_FILE`.
    pub(crate) roots: RootCertStore,
    /// `SITE_API_TOKEN_FILE`, which held a token just now.
    pub(crate) token: TokenFile,
}

impl Connection {
    /// Reads the three settings and the files that they name; `url` is the name of the first. `None`
    /// where there is a mistake, which `settings` then knows.
    pub(crate) async fn read(settings: &mut Settings, url: &str) -> Option<Self> {
        let origin = settings.required(url, Origin::parse);
        let roots = match settings.required_path("SITE_API_CA_FILE") {
            Some(path) => good(settings, "SITE_API_CA_FILE", &path, roots_from_pem_file(&path)),
            None => None,
        };
        let token = match settings.required_path("SITE_API_TOKEN_FILE") {
            Some(path) => {
                let token = TokenFile::open(&path).await;
                good(settings, "SITE_API_TOKEN_FILE", &path, token)
            }
            None => None,
        };
        Some(Self { origin: origin?, roots: roots?, token: token? })
    }
}

fn good<T, E: Error>(
    settings: &mut Settings,
    name: &str,
    path: &Path,
    read: Result<T, E>,
) -> Option<T> {
    read.map_err(|error| {
        settings.mistake(name, format!("{}: {}", path.display(), error_chain(&error)));
    })
    .ok()
}
