//! Hints after commits, and their channels.

use ring::digest::{SHA256, digest};

use crate::{SiteId, store::Store};

/// Where it is told that a member has changed: whoever propagates listens.
pub(crate) const CHANGED_CHANNEL: &str = "ssh_access_changed";

/// Where it is told that the feed of a Site has moved: hints of a hundred Sites on one database don't
/// wake each other.
pub(crate) fn channel(site: &SiteId) -> String {
    format!("ssh_access_{}", &hex::encode(digest(&SHA256, site.as_str().as_bytes()))[..32])
}

/// Sends hints on some channels, in a transaction of its own. A lost one costs a tick, so nobody hears
/// of a failure but the log.
pub(crate) async fn announce(store: &Store, channels: Vec<String>) {
    if let Err(error) = store.announce(channels).await {
        tracing::warn!(error = %error, "ssh_access.hint_lost");
    }
}
