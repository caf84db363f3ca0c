//! Wakes whoever waits for a stream of one Site.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use database::{DatabaseError, Hint, Listener, Pool};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until},
};

use crate::{
    Digest, Environment, SiteId, Stream,
    announcer::Announcer,
    ids::PerEnvironment,
    store::{Head, Store},
};

/// The wake-ups of the streams of one Site in this process.
///
/// Hints come from other processes by `NOTIFY` and are fast; a tick over the ends of the Site's
/// streams finds what a lost hint missed. Where hints come, or can't come as nobody hears them, each
/// tick looks; where they could come and none does, every third, as a hundred idle Sites look at one
/// database. A waiter subscribes before it reads, so that nothing falls between.
#[derive(Clone)]
pub struct Wakeups {
    site: SiteId,
    commands: Arc<PerEnvironment<watch::Sender<()>>>,
    done: Arc<PerEnvironment<watch::Sender<()>>>,
    events: Arc<watch::Sender<()>>,
    /// Something is going on: the next look comes a tick after the last.
    stirred: Arc<Notify>,
    tick: Duration,
    voids_expired: bool,
}

impl Wakeups {
    /// The shortest time between two looks, where nobody says otherwise.
    pub const TICK: Duration = Duration::from_secs(1);
    /// So many ticks are between two looks where no hint comes.
    const QUIET_TICKS: u32 = 3;

    /// Prepares the wake-ups of `site`; [`Wakeups::run`] feeds them.
    #[must_use]
    pub fn new(site: SiteId) -> Self {
        Self {
            site,
            commands: Arc::default(),
            done: Arc::default(),
            events: Arc::default(),
            stirred: Arc::default(),
            tick: Self::TICK,
            voids_expired: false,
        }
    }

    /// The same that also voids, at each look, what is due and expired: for a process that serves
    /// the Site's Runtimes. It then looks whether anybody waits or not.
    #[must_use]
    pub fn voiding_expired(self) -> Self {
        Self { voids_expired: true, ..self }
    }

    /// The same with another shortest time between two looks at the ends, longer than zero.
    #[must_use]
    pub fn with_tick(self, tick: Duration) -> Self {
        Self { tick, ..self }
    }

    /// Listens and ticks for ever. Without it a waiter sees nothing new before its wait ends.
    pub async fn run(self, pool: Pool) {
        let listener = Listener::new(pool.url(), channel(&self.site));
        let hears = AtomicBool::new(false);
        let listening = listener.run(|hint| match hint {
            Hint::Payload(payload) => match News::parse(&payload) {
                Some((environment, News::Commands)) => self.wake(environment),
                Some((environment, News::Done)) => self.wake_done(environment),
                None => {}
            },
            Hint::Connected => {
                hears.store(true, Ordering::Relaxed);
                for environment in Environment::ALL {
                    self.wake(environment);
                    self.wake_done(environment);
                }
            }
            Hint::Lost => {
                hears.store(false, Ordering::Relaxed);
                self.stirred.notify_one();
            }
        });
        let store = Store::new(pool.clone());
        let announcer = Announcer::start(store.clone(), Duration::ZERO);
        let expired = PerEnvironment::default();
        let [k8s, slurm] = Environment::ALL.map(|environment| {
            self.void_expired(&store, &announcer, environment, expired.of(environment))
        });
        tokio::join!(listening, self.look(&pool, &store, &expired, &hears), k8s, slurm);
    }

    /// The Site whose streams these are.
    #[must_use]
    pub fn site(&self) -> &SiteId {
        &self.site
    }

    /// Wakes the polls of a stream: it has something new for them. A process that enqueues as well
    /// calls it after its commit, and does not wait for its own hint to come back from the database.
    pub fn wake(&self, environment: Environment) {
        self.commands.of(environment).send_replace(());
        self.stirred.notify_one();
    }

    /// Wakes who waits for the ending of a command of a stream.
    pub(crate) fn wake_done(&self, environment: Environment) {
        self.done.of(environment).send_replace(());
        self.stirred.notify_one();
    }

    /// Tells of new commands, cancels and sessions.
    pub(crate) fn subscribe(&self, environment: Environment) -> watch::Receiver<()> {
        self.commands.of(environment).subscribe()
    }

    /// Tells of new results and of commands that were voided.
    pub(crate) fn subscribe_done(&self, environment: Environment) -> watch::Receiver<()> {
        self.done.of(environment).subscribe()
    }

    /// Tells that the Site may have new events, as the tick sees it. It tells as well where the tick
    /// could not look, so that who reads the events meets the trouble too.
    #[must_use]
    pub fn subscribe_events(&self) -> watch::Receiver<()> {
        self.events.subscribe()
    }

    fn anybody_waits(&self) -> bool {
        let for_events = self.events.receiver_count() > 0;
        for_events
            || Environment::ALL.into_iter().any(|environment| {
                self.commands.of(environment).receiver_count() > 0
                    || self.done.of(environment).receiver_count() > 0
            })
    }

    /// Compares the heads of the streams with those of the look before, again and again, and tells of
    /// what has expired. Costs nothing while nobody waits and nothing is to be voided.
    async fn look(
        &self,
        pool: &Pool,
        store: &Store,
        expired: &PerEnvironment<Notify>,
        hears: &AtomicBool,
    ) {
        let mut known = HashMap::new();
        loop {
            let tick_at = Instant::now() + self.tick;
            pool.close_idle();
            let mut next_at = tick_at + self.tick * (Self::QUIET_TICKS - 1);
            if self.voids_expired || self.anybody_waits() {
                match self.look_once(store, expired, &mut known).await {
                    Ok(Some(expiry)) => next_at = next_at.min(tick_at.max(expiry)),
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!(error = %error, "commands.tick_failed");
                        self.events.send_replace(());
                        next_at = tick_at;
                    }
                }
            }
            if hears.load(Ordering::Relaxed) {
                tokio::select! {
                    () = sleep_until(next_at) => continue,
                    () = self.stirred.notified() => {}
                }
            }
            sleep_until(tick_at).await;
        }
    }

    /// Returns when the next command expires that is due, where one does.
    async fn look_once(
        &self,
        store: &Store,
        expired: &PerEnvironment<Notify>,
        known: &mut HashMap<Environment, Head>,
    ) -> Result<Option<Instant>, DatabaseError> {
        let mut expiry: Option<Duration> = None;
        for (environment, head) in store.heads(&self.site).await? {
            let before = known.insert(environment, head);
            if before.is_none_or(|before| before.for_polls() != head.for_polls()) {
                self.wake(environment);
            }
            if before.is_none_or(|before| before.for_endings() != head.for_endings()) {
                self.wake_done(environment);
            }
            if before.is_none_or(|before| before.last_event != head.last_event) {
                self.events.send_replace(());
            }
            if let Some(expires_in) = head.expires_in.filter(|_| self.voids_expired) {
                if expires_in.is_zero() {
                    expired.of(environment).notify_one();
                } else {
                    expiry = Some(expiry.map_or(expires_in, |soonest| soonest.min(expires_in)));
                }
            }
        }
        // Beyond what a clock can say is never.
        Ok(expiry.and_then(|expires_in| Instant::now().checked_add(expires_in)))
    }

    /// Voids what is due and expired in a stream, each time that `expired` tells of some. Each stream
    /// has its own turn: one that is stuck behind a lock keeps neither the other nor the looks waiting.
    async fn void_expired(
        &self,
        store: &Store,
        announcer: &Announcer,
        environment: Environment,
        expired: &Notify,
    ) {
        let stream = Stream { site: self.site.clone(), environment };
        loop {
            expired.notified().await;
            loop {
                match store.expire(&stream).await {
                    Ok(0) => break,
                    // There can be more: the next command may be due and expired as well.
                    Ok(_voided) => {
                        self.wake_done(environment);
                        announcer.announce(&stream, News::Done);
                    }
                    Err(error) => {
                        tracing::warn!(
                            stream.environment = environment.as_str(),
                            error = %error,
                            "commands.void_failed"
                        );
                        self.stirred.notify_one();
                        break;
                    }
                }
            }
        }
    }
}

/// What a hint says is new in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum News {
    /// A command, a cancel or a session.
    Commands,
    /// A result, or a command that was voided.
    Done,
}

impl News {
    /// The text of the hint: the environment, and `done` after it where it is that.
    pub(crate) fn payload(self, environment: Environment) -> String {
        match self {
            Self::Commands => environment.as_str().to_owned(),
            Self::Done => format!("{} done", environment.as_str()),
        }
    }

    pub(crate) fn parse(payload: &str) -> Option<(Environment, Self)> {
        let (environment, news) = match payload.strip_suffix(" done") {
            Some(environment) => (environment, Self::Done),
            None => (payload, Self::Commands),
        };
        Some((Environment::parse(environment).ok()?, news))
    }
}

/// The channel of a Site: hints of a hundred Sites on one database don't wake each other.
pub(crate) fn channel(site: &SiteId) -> String {
    let digest = Digest::of(site.as_str().as_bytes()).to_string();
    format!("site_coordination_{}", &digest[..32])
}
