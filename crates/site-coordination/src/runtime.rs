//! The side of a Runtime: open a session, read the commands in order, store the results in order.

mod outputs;
mod poll;
mod results;
mod sessions;

use std::time::Duration;

use database::Pool;
use tokio::sync::watch;

use crate::{
    Environment, SiteId, Stream, Wakeups, announcer::Announcer, ids::PerEnvironment, store::Store,
};

pub use outputs::StoredOutput;
pub use poll::{CancelMark, Due, Page, PollRequest};
pub use results::{NewResult, NextRequest, Stored, StoredResults};
pub use sessions::{Opened, OpenedSession};

/// Serves the Runtimes of one Site, with the role `site_coordination_api`.
pub struct RuntimeSide {
    store: Store,
    wakeups: Wakeups,
    announcer: Announcer,
    /// For each environment the number of polls so far: a later one releases the one that waits.
    polls: PerEnvironment<watch::Sender<u64>>,
}

impl RuntimeSide {
    /// Between two hints. Results come one after the other, and few wait for one; a hint for each
    /// would be as many transactions again.
    const HINT_PAUSE: Duration = Duration::from_millis(50);

    /// Serves the Site of `wakeups` through `pool`. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(pool: Pool, wakeups: Wakeups) -> Self {
        let store = Store::new(pool);
        let announcer = Announcer::start(store.clone(), Self::HINT_PAUSE);
        Self { store, wakeups, announcer, polls: Default::default() }
    }

    /// The Site that is served.
    #[must_use]
    pub fn site(&self) -> &SiteId {
        self.wakeups.site()
    }

    /// Returns when the hints of everything so far are sent, or have failed: for a process that ends
    /// right after.
    pub async fn flush_hints(&self) {
        self.announcer.flush().await;
    }

    fn stream(&self, environment: Environment) -> Stream {
        Stream { site: self.site().clone(), environment }
    }
}
