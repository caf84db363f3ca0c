//! Wakes who waits for changes of one Site.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use database::{Hint, Listener, Pool};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};

use crate::{SiteId, announcer::channel, store::Store};

/// The wake-ups of the feed of one Site in this process.
///
/// Hints come by `NOTIFY` and are fast; a tick over the head finds what a lost one missed. While nobody
/// waits there is neither a connection nor a tick.
#[derive(Clone)]
pub struct Wakeups {
    site: SiteId,
    news: Arc<watch::Sender<()>>,
    /// Somebody has begun to wait.
    waited_for: Arc<Notify>,
    tick: Duration,
}

impl Wakeups {
    /// The time between two looks where no hint can come, unless somebody says otherwise.
    pub const TICK: Duration = Duration::from_secs(1);
    /// So many ticks are between two looks where hints can come.
    const QUIET_TICKS: u32 = 3;
    /// For how long the connection is kept when nobody waits: an agent that polls soon waits again.
    const KEPT: Duration = Duration::from_secs(60);

    /// Prepares the wake-ups of `site`; [`Wakeups::run`] feeds them.
    #[must_use]
    pub fn new(site: SiteId) -> Self {
        Self { site, news: Arc::default(), waited_for: Arc::default(), tick: Self::TICK }
    }

    /// The same with another time between two looks, longer than zero.
    #[must_use]
    pub fn with_tick(self, tick: Duration) -> Self {
        Self { tick, ..self }
    }

    /// The Site.
    #[must_use]
    pub fn site(&self) -> &SiteId {
        &self.site
    }

    /// Tells of changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        let receiver = self.news.subscribe();
        self.waited_for.notify_one();
        receiver
    }

    fn wake(&self) {
        self.news.send_replace(());
    }

    /// Listens and ticks for ever, as long as somebody waits. Without it a waiter sees nothing new
    /// before its wait ends.
    pub async fn run(self, pool: Pool) {
        let store = Store::new(pool.clone());
        loop {
            self.waited_for.notified().await;
            let hears = AtomicBool::new(false);
            let listener = Listener::new(pool.url(), channel(&self.site));
            let listening = listener.run(|hint| {
                hears.store(hint != Hint::Lost, Ordering::Relaxed);
                self.wake();
            });
            tokio::select! {
                () = listening => {}
                () = self.look(&pool, &store, &hears) => {}
            }
        }
    }

    /// Compares the head with that of the look before, again and again, and ends when nobody has waited
    /// for a while.
    async fn look(&self, pool: &Pool, store: &Store, hears: &AtomicBool) {
        let mut known = None;
        loop {
            pool.close_idle();
            if self.news.receiver_count() == 0
                && timeout(Self::KEPT, self.waited_for.notified()).await.is_err()
            {
                return;
            }
            match store.head(&self.site).await {
                Ok(head) => {
                    if known.replace(head) != Some(head) {
                        self.wake();
                    }
                }
                Err(error) => {
                    tracing::warn!(error = %error, "ssh_access.tick_failed");
                    // Who waits meets the trouble too.
                    self.wake();
                }
            }
            let ticks = if hears.load(Ordering::Relaxed) { Self::QUIET_TICKS } else { 1 };
            sleep_until(Instant::now() + self.tick * ticks).await;
        }
    }
}
