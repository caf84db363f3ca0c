//! The issuer's keys between two fetches.
//!
//! There is one fetch at a time, and whoever needs it joins it. How often there is one depends on
//! the clock alone, never on who asks or for what.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use super::{Keys, KeysError, LoginTrouble, source::Source};

/// For how long keys are kept, and how often they are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTimes {
    /// So old, keys are fetched again before one of them vouches for anybody.
    pub fresh_for: Duration,
    /// While they can't be fetched, the last good ones vouch until they are so old.
    pub kept_for: Duration,
    /// The least time from a fetch to the next that a key which is not known asks for.
    pub refetch_after: Duration,
    /// The least time from a fetch that failed to the next.
    pub retry_after: Duration,
    /// The time for a fetch, all of it.
    pub within: Duration,
}

/// Ten minutes and an hour; thirty seconds and three; five seconds.
impl Default for KeyTimes {
    fn default() -> Self {
        Self {
            fresh_for: Duration::from_secs(600),
            kept_for: Duration::from_secs(3600),
            refetch_after: Duration::from_secs(30),
            retry_after: Duration::from_secs(3),
            within: Duration::from_secs(5),
        }
    }
}

/// The last good keys and what came of the last fetch.
pub(super) struct KeyCache {
    source: Source,
    times: KeyTimes,
    state: Mutex<State>,
    trouble: watch::Sender<Option<LoginTrouble>>,
}

#[derive(Default)]
struct State {
    good: Option<Good>,
    last: Option<Last>,
    /// Closes when the fetch that is under way is over.
    under_way: Option<watch::Receiver<()>>,
}

struct Good {
    keys: Arc<Keys>,
    /// When their fetch began.
    since: Instant,
}

/// The last fetch that is over.
struct Last {
    ended: Instant,
    trouble: Option<LoginTrouble>,
}

/// What there is at a moment.
pub(super) struct Standing {
    /// The last good keys, if they may still vouch for somebody.
    pub(super) keys: Option<Arc<Keys>>,
    /// Whether they may without being fetched again.
    pub(super) is_fresh: bool,
    /// Why the last fetch failed, where it did.
    pub(super) trouble: Option<LoginTrouble>,
}

impl KeyCache {
    pub(super) fn new(source: Source, times: KeyTimes) -> Self {
        let (state, trouble) = (Mutex::default(), watch::Sender::new(None));
        Self { source, times, state, trouble }
    }

    /// What came of the last fetch that is over, as it changes.
    pub(super) fn trouble(&self) -> watch::Receiver<Option<LoginTrouble>> {
        self.trouble.subscribe()
    }

    pub(super) fn standing(&self) -> Standing {
        let now = Instant::now();
        let state = self.state();
        let good = state.good.as_ref().filter(|good| now < good.since + self.times.kept_for);
        Standing {
            keys: good.map(|good| Arc::clone(&good.keys)),
            is_fresh: good.is_some_and(|good| now < good.since + self.times.fresh_for),
            trouble: state.last.as_ref().and_then(|last| last.trouble.clone()),
        }
    }

    /// Joins the fetch that is under way, or begins one if it is time for one. `None` where it is not.
    /// It goes on when nobody waits for it.
    pub(super) fn fetch(self: &Arc<Self>) -> Option<Joined> {
        let mut state = self.state();
        if let Some(ended) = &state.under_way {
            return Some(Joined(ended.clone()));
        }
        if !self.is_time(&state) {
            return None;
        }
        let (ends, ended) = watch::channel(());
        state.under_way = Some(ended.clone());
        drop(state);
        let fetch = Fetch { cache: Arc::clone(self), begun: Instant::now(), outcome: None, ends };
        tokio::spawn(fetch.run());
        Some(Joined(ended))
    }

    fn is_time(&self, state: &State) -> bool {
        let Some(Last { ended, trouble }) = &state.last else { return true };
        let pause = match trouble {
            Some(_) => self.times.retry_after,
            None => self.times.refetch_after,
        };
        Instant::now() >= *ended + pause
    }

    fn end(&self, begun: Instant, outcome: Result<Keys, LoginTrouble>) {
        let mut state = self.state();
        let (word, trouble) = match outcome {
            Ok(keys) => {
                let before = state.good.as_ref();
                if before.is_none_or(|before| !before.keys.are_as(&keys)) {
                    tracing::info!(keys.count = keys.ids().count(), "login.keys_replaced");
                }
                state.good = Some(Good { keys: Arc::new(keys), since: begun });
                ("fetched", None)
            }
            Err(trouble) => {
                // The issuer's own word that no key of before is its key any more.
                if matches!(trouble, LoginTrouble::Keys(KeysError::NoneUsable)) {
                    state.good = None;
                }
                ("failed", Some(trouble))
            }
        };
        state.last = Some(Last { ended: Instant::now(), trouble: trouble.clone() });
        state.under_way = None;
        drop(state);
        metrics::counter!("login_key_fetches_total", "outcome" => word).increment(1);
        self.trouble.send_replace(trouble);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fetch, of whoever waits for it.
pub(super) struct Joined(watch::Receiver<()>);

impl Joined {
    /// Returns when it is over.
    pub(super) async fn ended(mut self) {
        // Nothing is ever sent: it closes.
        let _closed = self.0.changed().await;
    }
}

struct Fetch {
    cache: Arc<KeyCache>,
    begun: Instant,
    outcome: Option<Result<Keys, LoginTrouble>>,
    /// Dropped last, when what came of it is known.
    #[expect(dead_code, reason = "held, never sent to")]
    ends: watch::Sender<()>,
}

impl Fetch {
    async fn run(mut self) {
        let deadline = self.begun + self.cache.times.within;
        self.outcome = Some(self.cache.source.fetch(deadline).await);
    }
}

/// Also where it panicked, or the runtime ended.
impl Drop for Fetch {
    fn drop(&mut self) {
        let outcome = self.outcome.take().unwrap_or(Err(LoginTrouble::Ended));
        self.cache.end(self.begun, outcome);
    }
}
