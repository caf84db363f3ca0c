//! The settings of `ssh-access`.

use std::{net::SocketAddr, time::Duration};

use broker::Broker;
use database::{DatabaseUrl, DatabaseUrlError};
use service_kit::{Settings, SettingsErrors};
use service_start::events_broker;
use ssh_access::{PropagatorLimits, SiteId, Window};

/// Where keys and feeds are.
pub(crate) const DATABASE: &str = "SSH_ACCESS_DATABASE_URL";
/// The address of the metrics.
pub(crate) const METRICS_LISTEN: &str = "SSH_ACCESS_METRICS_LISTEN";
/// Which lines are logged.
pub(crate) const LOG: &str = "SSH_ACCESS_LOG";
const SITE: &str = "SSH_ACCESS_SITE";
const WINDOW: &str = "SSH_ACCESS_WINDOW_SECONDS";
const LEASE: &str = "SSH_ACCESS_LEASE_SECONDS";
const EVENTS_FOR: &str = "SSH_ACCESS_EVENTS_RETENTION_DAYS";
/// The Site of `site-api`, which one ConfigMap gives to both processes.
const SITE_OF_THE_API: &str = "SITE_API_SITE_ID";

/// What the names of this process's own settings begin with.
const PREFIX: &str = "SSH_ACCESS_";
/// A setting of `site-agent`, which may share a ConfigMap with this process. Kubernetes itself adds
/// variables for a Service that is named `ssh-access`.
const OF_THE_AGENT: &str = "SSH_ACCESS_SITE_API_URL";

/// What the process was told.
pub(crate) struct SshAccessSettings {
    /// `SSH_ACCESS_DATABASE_URL`: the role `ssh_access_process`.
    pub(crate) database: DatabaseUrl,
    /// `SSH_ACCESS_SITE`: the one Site that is propagated to.
    pub(crate) site: SiteId,
    /// `SSH_ACCESS_WINDOW_SECONDS`: within how long a removal has to be in force.
    pub(crate) window: Window,
    /// `SSH_ACCESS_METRICS_LISTEN`: where health, metrics and alarms are served, without TLS.
    pub(crate) metrics_listen: SocketAddr,
    /// `EVENTS_BROKER_URL` and `EVENTS_BROKER_CA_FILE`: where events are published, if anywhere.
    pub(crate) events: Option<Broker>,
    /// Among them `SSH_ACCESS_LEASE_SECONDS` and `SSH_ACCESS_EVENTS_RETENTION_DAYS`.
    pub(crate) limits: PropagatorLimits,
}

impl SshAccessSettings {
    /// Reads everything and reports every mistake at once.
    pub(crate) fn read(mut settings: Settings) -> Result<Self, SettingsErrors> {
        let database = settings
            .required_secret_as(DATABASE, |text| text.parse().map_err(DatabaseUrlError::reason));
        let site = settings.required(SITE, SiteId::parse);
        let site_of_the_api = settings.optional(SITE_OF_THE_API, SiteId::parse);
        if let (Some(site), Some(other)) = (&site, &site_of_the_api)
            && site != other
        {
            let (site, other) = (site.as_str(), other.as_str());
            let reason =
                format!("is {site}, but {SITE_OF_THE_API} is {other}: a Site has one name");
            settings.mistake(SITE, reason);
        }
        let window = settings.or_default(WINDOW, Window::DEFAULT, Window::parse);
        let metrics_listen =
            settings.or_default(METRICS_LISTEN, ([127, 0, 0, 1], 9465).into(), address);
        let mut limits = PropagatorLimits::default();
        limits.lease = settings.or_default(LEASE, limits.lease, lease);
        limits.events_for = settings.or_default(EVENTS_FOR, limits.events_for, retention);
        let events = events_broker(&mut settings);
        warn_of_unknown(&settings);
        let value = (|| {
            Some(Self {
                database: database?,
                site: site?,
                window,
                metrics_listen,
                events: events?,
                limits,
            })
        })();
        settings.accept(value)
    }
}

/// Says of each variable that looks like a setting of this process that nobody reads it.
fn warn_of_unknown(settings: &Settings) {
    for name in settings.unasked(PREFIX) {
        let of_kubernetes = name == "SSH_ACCESS_PORT"
            || name.starts_with("SSH_ACCESS_PORT_")
            || name.starts_with("SSH_ACCESS_SERVICE_");
        if !of_kubernetes && name != OF_THE_AGENT {
            let detail = "this release of ssh-access has no setting of this name";
            tracing::warn!(setting.name = name, detail, "setting.unknown");
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an address and a port, such as 127.0.0.1:9465".to_owned())
}

fn lease(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().ok().filter(|seconds| (3..=300).contains(seconds));
    seconds.map(Duration::from_secs).ok_or("must be a whole number of seconds from 3 to 300")
}

fn retention(text: &str) -> Result<Duration, &'static str> {
    let days = text.parse().ok().filter(|days| (1..=36_500).contains(days));
    days.map(|days: u64| Duration::from_secs(days * 86_400))
        .ok_or("must be a whole number of days from 1 to 36500")
}
