//! What the process is told about SSH access: all that it needs, or that there is none.

use database::{DatabaseUrl, DatabaseUrlError};
use service_kit::Settings;
use ssh_access::{SiteId, Window};

/// Where the feed is.
pub(crate) const SSH_DATABASE: &str = "SSH_ACCESS_DATABASE_URL";
const WINDOW: &str = "SSH_ACCESS_WINDOW_SECONDS";

/// What SSH access needs.
pub(crate) struct SshAccessSettings {
    /// `SSH_ACCESS_SITE`: the Site, which is that of the listener.
    pub(crate) site: SiteId,
    /// `SSH_ACCESS_DATABASE_URL`: the role `ssh_access_api`.
    pub(crate) database: DatabaseUrl,
    /// `SSH_ACCESS_WINDOW_SECONDS`.
    pub(crate) window: Window,
}

/// `None` in it where the listener serves no SSH access: where `SSH_ACCESS_SITE`, of which `site` was
/// read, is not set. `None` around it where a setting is wrong; every mistake is recorded then. What
/// is given is looked at also where it is not used.
pub(crate) fn read(
    settings: &mut Settings,
    is_set: bool,
    site: Option<&site_coordination::SiteId>,
) -> Option<Option<SshAccessSettings>> {
    let parse = |text: &str| text.parse().map_err(DatabaseUrlError::reason);
    let database = if is_set {
        settings.required_secret_as(SSH_DATABASE, parse)
    } else {
        settings.optional_secret_as(SSH_DATABASE, parse)
    };
    let window = settings.or_default(WINDOW, Window::DEFAULT, Window::parse);
    if !is_set {
        return Some(None);
    }
    // Both contexts have one rule for Sites.
    let site = SiteId::parse(site?.as_str()).ok()?;
    Some(Some(SshAccessSettings { site, database: database?, window }))
}
