//! The settings of `site-api`, and what the files that they name hold.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use callers::Grants;
use chrono::{DateTime, Utc};
use database::{DatabaseUrl, DatabaseUrlError};
use rustls::ServerConfig;
use service_kit::{
    Settings, SettingsErrors,
    tls::{TlsError, certificate_chain, private_key, server_config_of},
};
use site_coordination::SiteId;

use crate::limits::Limits;

/// What the process was told.
pub(crate) struct SiteApiSettings {
    /// `SITE_API_LISTEN`: where the Site API listens.
    pub(crate) listen: SocketAddr,
    /// `SITE_API_METRICS_LISTEN`: where metrics and alarms are served, without TLS.
    pub(crate) metrics_listen: SocketAddr,
    /// `SITE_API_TLS_CERT_FILE` and `SITE_API_TLS_KEY_FILE`: the certificate chain and its private
    /// key, PEM.
    pub(crate) tls: Arc<ServerConfig>,
    /// `SITE_API_SITE_ID`: the one Site that is served.
    pub(crate) site: SiteId,
    /// `SITE_API_NATIVE_GRANTS_FILE`: the grants of native bearers.
    pub(crate) grants: NativeGrants,
    /// What callers and the database may take.
    pub(crate) limits: Limits,
    /// `SITE_COORDINATION_DATABASE_URL`: the role `site_coordination_api`.
    pub(crate) database: DatabaseUrl,
}

/// The grants of native bearers as they are at the start.
pub(crate) enum NativeGrants {
    /// No file is named: native bearers are unavailable.
    Unset,
    /// The file is not there. Its Secret is optional, so this is an alarm and no mistake.
    Absent(PathBuf),
    /// What the file holds.
    Read(Grants),
}

/// The address of the Site API.
pub(crate) const LISTEN: &str = "SITE_API_LISTEN";
/// The address of the metrics.
pub(crate) const METRICS_LISTEN: &str = "SITE_API_METRICS_LISTEN";
/// Where the commands are.
pub(crate) const DATABASE: &str = "SITE_COORDINATION_DATABASE_URL";
const CERTIFICATE: &str = "SITE_API_TLS_CERT_FILE";
const KEY: &str = "SITE_API_TLS_KEY_FILE";
const GRANTS: &str = "SITE_API_NATIVE_GRANTS_FILE";
const SITE: &str = "SITE_API_SITE_ID";

/// What the names of this process's own settings begin with.
const PREFIX: &str = "SITE_API_";
/// Settings of `site-agent`, which may share a ConfigMap with this process. Kubernetes itself adds
/// variables for a Service that is named `site-api`.
const OF_THE_AGENT: [&str; 3] = ["SITE_API_URL", "SITE_API_CA_FILE", "SITE_API_TOKEN_FILE"];

/// The Site of a listener without native grants that names none. Such a listener lets nobody in
/// yet: it is for the Kubernetes identities of a later release.
const UNNAMED_SITE: &str = "default";

impl SiteApiSettings {
    /// Reads everything, files included, and reports every mistake at once. Grants are those that
    /// are valid at `now`.
    pub(crate) fn read(mut settings: Settings, now: DateTime<Utc>) -> Result<Self, SettingsErrors> {
        let listen = settings.or_default(LISTEN, ([0, 0, 0, 0], 8443).into(), address);
        let metrics_listen =
            settings.or_default(METRICS_LISTEN, ([127, 0, 0, 1], 9464).into(), address);
        let tls = tls(&mut settings);
        let grants = grants(&mut settings, now);
        let site = settings.optional(SITE, SiteId::parse);
        if settings.is_set(GRANTS) && !settings.is_set(SITE) {
            let reason = format!(
                "is not set, but {GRANTS} is: a listener with native grants must know its Site"
            );
            settings.mistake(SITE, reason);
        }
        let site = site.or_else(|| SiteId::parse(UNNAMED_SITE).ok());
        let database = settings
            .required_secret_as(DATABASE, |text| text.parse().map_err(DatabaseUrlError::reason));
        let limits = Limits::read(&mut settings);
        warn_of_unknown(&mut settings);
        let value = (|| {
            Some(Self {
                listen,
                metrics_listen,
                tls: tls?,
                site: site?,
                grants: grants?,
                limits,
                database: database?,
            })
        })();
        settings.accept(value)
    }
}

/// A name that nobody asks for is told, as it may be a slip of the pen. It refuses nothing: another
/// release may know it.
fn warn_of_unknown(settings: &mut Settings) {
    for name in settings.unasked(PREFIX) {
        let of_kubernetes = name == "SITE_API_PORT"
            || name.starts_with("SITE_API_PORT_")
            || name.starts_with("SITE_API_SERVICE_");
        if !of_kubernetes && !OF_THE_AGENT.contains(&name.as_str()) {
            let detail = "this release of site-api has no setting of this name";
            tracing::warn!(setting.name = name, detail, "setting.unknown");
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an address and a port, such as 0.0.0.0:8443".to_owned())
}

fn tls(settings: &mut Settings) -> Option<Arc<ServerConfig>> {
    let chain = file(settings, CERTIFICATE, certificate_chain);
    let key = file(settings, KEY, private_key);
    let config = server_config_of(chain?, key?);
    config.map_err(|error| settings.mistake(KEY, error.reason())).ok()
}

/// What is read from the file that a required setting names.
fn file<T>(
    settings: &mut Settings,
    name: &str,
    read: fn(&Path) -> Result<T, TlsError>,
) -> Option<T> {
    let path = settings.required_path(name)?;
    let text = |error: TlsError| format!("{}: {}", path.display(), error.reason());
    read(&path).map_err(|error| settings.mistake(name, text(error))).ok()
}

fn grants(settings: &mut Settings, now: DateTime<Utc>) -> Option<NativeGrants> {
    let Some(path) = settings.optional_path(GRANTS) else {
        // Empty is recorded as a mistake already.
        return Some(NativeGrants::Unset);
    };
    let shown = path.display().to_string();
    match fs::read_to_string(&path) {
        Ok(text) => match Grants::parse(&text, now) {
            Ok(grants) => return Some(NativeGrants::Read(grants)),
            Err(errors) => {
                for mistake in errors.mistakes() {
                    settings.mistake(GRANTS, format!("{shown}: {mistake}"));
                }
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some(NativeGrants::Absent(path));
        }
        Err(error) => settings.mistake(GRANTS, format!("{shown}: {}", error.kind())),
    }
    None
}
