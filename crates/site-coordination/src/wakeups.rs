//! Wakes whoever waits for a stream of one Site.

use std::{collections::HashMap, sync::Arc, time::Duration};

use database::{Hint, Listener, Pool};
use tokio::sync::watch;

use crate::{Digest, Environment, SiteId, ids::PerEnvironment, store::Store};

/// The wake-ups of the streams of one Site in this process.
///
/// Hints come from other processes by `NOTIFY` and are fast; a tick over the ends of the Site's
/// streams finds what a lost hint missed. A waiter subscribes before it reads, so that nothing
/// falls between.
#[derive(Clone)]
pub struct Wakeups {
    site: SiteId,
    streams: Arc<PerEnvironment<watch::Sender<()>>>,
    tick: Duration,
}

impl Wakeups {
    /// How late a lost hint is found, at most, where nobody says otherwise.
    pub const TICK: Duration = Duration::from_secs(1);

    /// Prepares the wake-ups of `site`; [`Wakeups::run`] feeds them.
    #[must_use]
    pub fn new(site: SiteId) -> Self {
        Self { site, streams: Arc::default(), tick: Self::TICK }
    }

    /// The same with another time between two looks at the ends, longer than zero.
    #[must_use]
    pub fn with_tick(self, tick: Duration) -> Self {
        Self { tick, ..self }
    }

    /// Listens and ticks for ever. Without it a waiter sees nothing new before its wait ends.
    pub async fn run(self, pool: Pool) {
        let listener = Listener::new(pool.url(), channel(&self.site));
        let listening = listener.run(|hint| match hint {
            Hint::Payload(environment) => {
                if let Ok(environment) = Environment::parse(&environment) {
                    self.wake(environment);
                }
            }
            Hint::Connected => Environment::ALL.into_iter().for_each(|e| self.wake(e)),
        });
        tokio::join!(listening, self.look(&pool));
    }

    /// The Site whose streams these are.
    #[must_use]
    pub fn site(&self) -> &SiteId {
        &self.site
    }

    /// Wakes the waiters of a stream: it has something new. A process that enqueues as well calls it
    /// after its commit, and does not wait for its own hint to come back from the database.
    pub fn wake(&self, environment: Environment) {
        self.streams.of(environment).send_replace(());
    }

    pub(crate) fn subscribe(&self, environment: Environment) -> watch::Receiver<()> {
        self.streams.of(environment).subscribe()
    }

    /// Compares the ends of the streams with those of the tick before. Costs nothing while nobody
    /// waits.
    async fn look(&self, pool: &Pool) {
        let store = Store::new(pool.clone());
        let mut interval = tokio::time::interval(self.tick);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut known = HashMap::new();
        loop {
            interval.tick().await;
            pool.close_idle();
            if Environment::ALL.iter().all(|e| self.streams.of(*e).receiver_count() == 0) {
                continue;
            }
            match store.heads(&self.site).await {
                Ok(heads) => {
                    for (environment, last_seq) in heads {
                        if known.insert(environment, last_seq) != Some(last_seq) {
                            self.wake(environment);
                        }
                    }
                }
                Err(error) => tracing::warn!(error = %error, "commands.tick_failed"),
            }
        }
    }
}

/// The channel of a Site: hints of a hundred Sites on one database don't wake each other.
pub(crate) fn channel(site: &SiteId) -> String {
    let digest = Digest::of(site.as_str().as_bytes()).to_string();
    format!("site_coordination_{}", &digest[..32])
}
