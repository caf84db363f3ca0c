//! The settings of `site-api`, and what the files that they name hold.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use broker::Broker;
use callers::{Found, Grants, login::LoginSettings};
use chrono::{DateTime, Utc};
use database::{DatabaseUrl, DatabaseUrlError};
use rustls::ServerConfig;
use service_kit::{
    Settings, SettingsErrors,
    tls::{TlsError, certificate_chain, private_key, server_config_of},
};
use service_start::events_broker;
use site_coordination::SiteId;

use crate::{
    authority::{self, AuthoritySettings},
    certificate::Files,
    grants::look,
    limits::Limits,
    login,
    service_accounts::{self, ReviewSettings},
    ssh_access::{self, SshAccessSettings},
};

/// What the process was told.
pub(crate) struct SiteApiSettings {
    /// `SITE_API_LISTEN`: where the Site API listens.
    pub(crate) listen: SocketAddr,
    /// `SITE_API_METRICS_LISTEN`: where metrics and alarms are served, without TLS.
    pub(crate) metrics_listen: SocketAddr,
    /// `SITE_API_TLS_CERT_FILE` and `SITE_API_TLS_KEY_FILE`: the certificate chain and its private
    /// key, PEM.
    pub(crate) tls: Tls,
    /// `SITE_API_SITE_ID`: the one Site that is served.
    pub(crate) site: SiteId,
    /// Whether that was named. A listener that names none takes no native grants up.
    pub(crate) site_is_named: bool,
    /// `SITE_API_NATIVE_GRANTS_FILE`: the grants of native bearers, where a file is named.
    pub(crate) grants: Option<GrantsFile>,
    /// Who is let in from a cluster, and where their tokens are reviewed, if anybody is.
    pub(crate) service_accounts: Option<ReviewSettings>,
    /// `SITE_API_LOGIN_ISSUER`, `SITE_API_LOGIN_AUDIENCE` and `SITE_API_LOGIN_CA_FILE`: whose access
    /// tokens are taken, if anybody's.
    pub(crate) login: Option<LoginSettings>,
    /// Execution authority, where it is enabled.
    pub(crate) authority: Option<AuthoritySettings>,
    /// What SSH access needs, where it is served.
    pub(crate) ssh_access: Option<SshAccessSettings>,
    /// What callers and the database may take.
    pub(crate) limits: Limits,
    /// `EVENTS_BROKER_URL` and `EVENTS_BROKER_CA_FILE`: where events are published, if anywhere.
    pub(crate) events: Option<Broker>,
    /// `SITE_COORDINATION_DATABASE_URL`: the role `site_coordination_api`.
    pub(crate) database: DatabaseUrl,
}

/// The certificate as it is at the start.
pub(crate) struct Tls {
    /// Where it comes from.
    pub(crate) files: Files,
    /// What is made of it.
    pub(crate) config: Arc<ServerConfig>,
}

/// The grants file as it is at the start: valid or absent. Its Secret is optional, so that it is
/// absent is an alarm and no mistake.
pub(crate) struct GrantsFile {
    /// Where it is, or will be.
    pub(crate) path: PathBuf,
    /// What was there.
    pub(crate) found: Found,
}

/// The address of the Site API.
pub(crate) const LISTEN: &str = "SITE_API_LISTEN";
/// The address of the metrics.
pub(crate) const METRICS_LISTEN: &str = "SITE_API_METRICS_LISTEN";
/// Where the commands are.
pub(crate) const DATABASE: &str = "SITE_COORDINATION_DATABASE_URL";
/// Which lines are logged.
pub(crate) const LOG: &str = "SITE_API_LOG";
const CERTIFICATE: &str = "SITE_API_TLS_CERT_FILE";
const KEY: &str = "SITE_API_TLS_KEY_FILE";
const GRANTS: &str = "SITE_API_NATIVE_GRANTS_FILE";
const SITE: &str = "SITE_API_SITE_ID";
const SSH_SITE: &str = "SSH_ACCESS_SITE";

/// What the names of this process's own settings begin with.
const PREFIX: &str = "SITE_API_";
/// Settings of `site-agent`, which may share a ConfigMap with this process. Kubernetes itself adds
/// variables for a Service that is named `site-api`.
const OF_THE_AGENT: [&str; 3] = ["SITE_API_URL", "SITE_API_CA_FILE", "SITE_API_TOKEN_FILE"];

/// The Site of a listener without native grants that names none: one with Kubernetes identities
/// alone.
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
        let site_is_named = settings.is_set(SITE);
        let site = settings.optional(SITE, SiteId::parse);
        let there = grants.as_ref().is_none_or(|grants| {
            grants.as_ref().is_some_and(|grants| grants.found != Found::Absent)
        });
        if there && !site_is_named {
            let reason = format!(
                "is not set, but {GRANTS} is: a listener with native grants must know its Site"
            );
            settings.mistake(SITE, reason);
        }
        let ssh_is_set = settings.is_set(SSH_SITE);
        let ssh_site = settings.optional(SSH_SITE, SiteId::parse);
        if let (Some(site), Some(ssh_site)) = (&site, &ssh_site)
            && site != ssh_site
        {
            let (site, ssh_site) = (site.as_str(), ssh_site.as_str());
            let reason =
                format!("is {ssh_site}, but {SITE} is {site}: one listener serves one Site");
            settings.mistake(SSH_SITE, reason);
        }
        if ssh_is_set && !site_is_named {
            let reason =
                format!("is set, but {SITE} is not: a listener of SSH access is of one Site");
            settings.mistake(SSH_SITE, reason);
        }
        let ssh_access = ssh_access::read(&mut settings, ssh_is_set, ssh_site.as_ref());
        let site = site.or_else(|| SiteId::parse(UNNAMED_SITE).ok());
        let database = settings
            .required_secret_as(DATABASE, |text| text.parse().map_err(DatabaseUrlError::reason));
        let events = events_broker(&mut settings);
        let limits = Limits::read(&mut settings);
        let service_accounts = service_accounts::read(&mut settings, &limits);
        let login = login::read(&mut settings, &limits);
        let authority = authority::read(&mut settings, &limits);
        if let (Some(None), Some(Some(authority))) = (&login, &authority) {
            authority.need_logins(&mut settings);
        }
        warn_of_unknown(&mut settings);
        let value = (|| {
            Some(Self {
                listen,
                metrics_listen,
                tls: tls?,
                site: site?,
                site_is_named,
                grants: grants?,
                service_accounts: service_accounts?,
                login: login?,
                authority: authority?,
                ssh_access: ssh_access?,
                limits,
                events: events?,
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

fn tls(settings: &mut Settings) -> Option<Tls> {
    let certificate = file(settings, CERTIFICATE, certificate_chain);
    let key = file(settings, KEY, private_key);
    let ((certificate, chain), (key, private)) = (certificate?, key?);
    let config = server_config_of(chain, private);
    let config = config.map_err(|error| settings.mistake(KEY, error.reason())).ok()?;
    Some(Tls { files: Files { certificate, key }, config })
}

/// The file that a required setting names, and what is read from it.
fn file<T>(
    settings: &mut Settings,
    name: &str,
    read: fn(&Path) -> Result<T, TlsError>,
) -> Option<(PathBuf, T)> {
    let path = settings.required_path(name)?;
    let text = |error: TlsError| format!("{}: {}", path.display(), error.reason());
    let content = read(&path).map_err(|error| settings.mistake(name, text(error))).ok()?;
    Some((path, content))
}

/// `None` where the file is there and can't be used; every mistake is recorded then.
fn grants(settings: &mut Settings, now: DateTime<Utc>) -> Option<Option<GrantsFile>> {
    let Some(path) = settings.optional_path(GRANTS) else {
        // Empty is recorded as a mistake already.
        return Some(None);
    };
    let found = look(&path);
    let mistakes = match &found {
        Found::Absent => Vec::new(),
        Found::Unusable(reason) => vec![reason.clone()],
        Found::Text(text) => Grants::parse(text, now)
            .err()
            .map_or_else(Vec::new, |errors| errors.mistakes().to_vec()),
    };
    for mistake in &mistakes {
        settings.mistake(GRANTS, format!("{}: {mistake}", path.display()));
    }
    mistakes.is_empty().then_some(Some(GrantsFile { path, found }))
}
