//! The settings of `site-api`.

use std::{net::SocketAddr, path::PathBuf};

use database::{DatabaseUrl, DatabaseUrlError};
use service_kit::{Settings, SettingsErrors};
use site_coordination::SiteId;

/// What the process was told.
pub(crate) struct SiteApiSettings {
    /// `SITE_API_LISTEN`: where the Site API listens.
    pub(crate) listen: SocketAddr,
    /// `SITE_API_METRICS_LISTEN`: where metrics and alarms are served, without TLS.
    pub(crate) metrics_listen: SocketAddr,
    /// `SITE_API_TLS_CERT_FILE`: the certificate chain, PEM.
    pub(crate) certificate: PathBuf,
    /// `SITE_API_TLS_KEY_FILE`: its private key, PEM.
    pub(crate) key: PathBuf,
    /// `SITE_API_SITE_ID`: the one Site that is served.
    pub(crate) site: SiteId,
    /// `SITE_API_NATIVE_GRANTS_FILE`: the grants of native bearers.
    pub(crate) grants: Option<PathBuf>,
    /// `SITE_COORDINATION_DATABASE_URL`: the role `site_coordination_api`.
    pub(crate) database: DatabaseUrl,
    /// `SITE_API_LOG`: what is logged, in the syntax of tracing's `EnvFilter`.
    pub(crate) log: Option<String>,
}

impl SiteApiSettings {
    /// The Site of a listener that serves only Kubernetes identities and names none.
    const UNNAMED_SITE: &str = "default";

    /// Reads everything and reports every mistake at once.
    pub(crate) fn read(mut settings: Settings) -> Result<Self, SettingsErrors> {
        let listen = settings.or_default("SITE_API_LISTEN", ([0, 0, 0, 0], 8443).into(), address);
        let metrics_listen =
            settings.or_default("SITE_API_METRICS_LISTEN", ([127, 0, 0, 1], 9464).into(), address);
        let certificate = settings.required_path("SITE_API_TLS_CERT_FILE");
        let key = settings.required_path("SITE_API_TLS_KEY_FILE");
        let grants = settings.optional_path("SITE_API_NATIVE_GRANTS_FILE");
        let site = settings.optional("SITE_API_SITE_ID", SiteId::parse);
        if settings.is_set("SITE_API_NATIVE_GRANTS_FILE") && !settings.is_set("SITE_API_SITE_ID") {
            settings.mistake(
                "SITE_API_SITE_ID",
                "is not set, but SITE_API_NATIVE_GRANTS_FILE is: a listener with native grants \
                 must know its Site",
            );
        }
        let database = settings.required_secret_as("SITE_COORDINATION_DATABASE_URL", |text| {
            text.parse().map_err(DatabaseUrlError::reason)
        });
        let log = settings.optional("SITE_API_LOG", |text| Ok::<_, String>(text.to_owned()));
        let site = site.or_else(|| SiteId::parse(Self::UNNAMED_SITE).ok());
        let value = (|| {
            Some(Self {
                listen,
                metrics_listen,
                certificate: certificate?,
                key: key?,
                site: site?,
                grants,
                database: database?,
                log,
            })
        })();
        settings.accept(value)
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an address and a port, such as 0.0.0.0:8443".to_owned())
}
