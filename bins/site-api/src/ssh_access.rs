//! The routes of SSH access: what is in force at the Site, and what its agent has done. They are served
//! where `SSH_ACCESS_SITE` is set.

pub(crate) mod acknowledge;
pub(crate) mod changes;
mod settings;
mod snapshot;

use std::sync::Arc;

use database::{Pool, PoolLimits};
use ssh_access::{Feed, Wakeups};
use tokio::sync::Semaphore;

pub(crate) use acknowledge::acknowledge;
pub(crate) use changes::changes;
pub(crate) use settings::{SSH_DATABASE, SshAccessSettings, read};
pub(crate) use snapshot::snapshot;

/// Connections to the context at the most, opened when they are needed.
const CONNECTIONS: usize = 4;

/// Snapshots that are read at once. Each holds a connection until its caller has taken it.
const SNAPSHOTS: usize = 2;

/// The feed of the Site.
#[derive(Clone)]
pub(crate) struct SshAccess {
    feed: Feed,
    pool: Pool,
    snapshots: Arc<Semaphore>,
}

impl SshAccess {
    /// The feed, and what wakes who waits for changes of it.
    pub(crate) fn open(settings: &SshAccessSettings) -> (Self, Wakeups) {
        let limits = PoolLimits { connections: CONNECTIONS, ..PoolLimits::default() };
        let pool = Pool::new(&settings.database, "site-api", limits);
        let wakeups = Wakeups::new(settings.site.clone());
        let feed = Feed::new(pool.clone(), wakeups.clone(), settings.window);
        (Self { feed, pool, snapshots: Arc::new(Semaphore::new(SNAPSHOTS)) }, wakeups)
    }

    /// The pool of the context.
    pub(crate) fn pool(&self) -> Pool {
        self.pool.clone()
    }
}

/// As the wire has a digest; see docs/decisions/0014-context-types-are-its-own.md.
fn digest(digest: ssh_access::Digest) -> site_protocol::Digest {
    site_protocol::Digest::from_bytes(*digest.as_bytes())
}
