//! From a token to who it is.

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use https_client::{Answer, Origin, RootsError, TokenFileError};
use ring::rand::SecureRandom;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    answer::{is_review, verdict},
    files::{Files, Unusable},
    key::{Key, Keys},
    memory::Memory,
    outcome::{ReviewError, ReviewTrouble, Reviewed},
    places::Places,
    request::request,
};
use crate::service_account::ServiceAccountToken;

/// The longest for which a review is given out again; the API server remembers for as long itself.
const MOST_CACHED: Duration = Duration::from_secs(10);

/// Where and how tokens are reviewed.
#[derive(Clone, Debug)]
pub struct ReviewerSettings {
    /// The API server of the cluster.
    pub origin: Origin,
    /// The authorities that may vouch for it, PEM. Read again for each review.
    pub ca_file: PathBuf,
    /// Our own token, by which we ask. Read again for each review.
    pub token_file: PathBuf,
    /// Whom a token must be made for: us.
    pub audience: String,
    /// The time for a review, all of it. Up to half of it is spent on waiting for a place.
    pub budget: Duration,
    /// For how long a good review is given out again, at most 10 s; 0 for not at all.
    pub cache_for: Duration,
    /// The most reviews at once, at least 2.
    pub in_flight: usize,
}

/// Asks a cluster whose tokens are. Clones share everything.
#[derive(Clone)]
pub struct Reviewer(Arc<Inner>);

/// Why no reviewer can be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Our own token.
    #[error("our reviewer's token can't be had")]
    Token(#[source] TokenFileError),
    /// The cluster's CA.
    #[error("the cluster's CA can't be had")]
    Ca(#[source] RootsError),
    /// The random source failed.
    #[error("the random source failed")]
    Random,
}

struct Inner {
    audience: String,
    budget: Duration,
    cache_for: Duration,
    clock: fn() -> DateTime<Utc>,
    keys: Keys,
    files: Files,
    places: Places,
    shared: Mutex<Shared>,
}

struct Shared {
    memory: Memory,
    under_way: HashMap<Key, Arc<Tell>>,
}

type Outcome = Result<Reviewed, ReviewError>;

/// Tells those who wait for one review what it came to.
type Tell = watch::Sender<Option<Outcome>>;

impl Reviewer {
    /// Reads the two files for the first time and waits for their file system. Nothing is asked yet:
    /// an API server that is away keeps nobody from the start.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(
        settings: ReviewerSettings,
        random: &dyn SecureRandom,
        clock: fn() -> DateTime<Utc>,
    ) -> Result<Self, OpenError> {
        let ReviewerSettings { origin, ca_file, token_file, audience, budget, .. } = settings;
        let keys = Keys::new(random).map_err(|_| OpenError::Random)?;
        let files =
            Files::open(origin, token_file, ca_file).map_err(|unusable| match unusable {
                Unusable::Token(error) => OpenError::Token(error),
                Unusable::Ca(error) => OpenError::Ca(error),
            })?;
        let shared = Shared { memory: Memory::new(), under_way: HashMap::new() };
        Ok(Self(Arc::new(Inner {
            audience,
            budget,
            cache_for: settings.cache_for.min(MOST_CACHED),
            clock,
            keys,
            files,
            places: Places::new(settings.in_flight),
            shared: Mutex::new(shared),
        })))
    }

    /// Who a token is: as it was reviewed some seconds ago, or by a review that is under way or
    /// begins now. It takes no longer than the budget.
    ///
    /// A review goes on when its caller hangs up, as others may wait for it.
    ///
    /// # Errors
    ///
    /// [`ReviewError`]. None is remembered: the next call asks again.
    pub async fn review(&self, token: &ServiceAccountToken) -> Result<Reviewed, ReviewError> {
        let mut told = match Inner::begin(&self.0, token) {
            Begun::Remembered(reviewed) => return Ok(reviewed),
            Begun::UnderWay(told) => told,
        };
        let ended = || Err(ReviewTrouble::Ended.into());
        match told.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(ended),
            Err(_) => ended(),
        }
    }

    /// Whether the last review of a token was good, and not so long ago that it was forgotten. Nobody
    /// is let in by that; a caller of ours may wait where a stranger may not.
    #[must_use]
    pub fn knows(&self, token: &ServiceAccountToken) -> bool {
        let key = self.0.keys.of(&self.0.audience, token.expose());
        self.0.shared().memory.knows(&key)
    }

    /// Has our own reviewer's token reviewed: any review of it says that the API server answers us,
    /// whatever it says of the token.
    ///
    /// # Errors
    ///
    /// [`ReviewTrouble`].
    pub async fn probe(&self) -> Result<(), ReviewTrouble> {
        let deadline = Instant::now() + self.0.budget;
        let Asked { answer, about, .. } = self.0.ask(None, deadline).await?;
        is_review(answer.status, &answer.body, about.expose())
    }
}

/// It holds secrets.
impl fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewer").finish_non_exhaustive()
    }
}

enum Begun {
    Remembered(Reviewed),
    UnderWay(watch::Receiver<Option<Outcome>>),
}

impl Inner {
    fn begin(self: &Arc<Self>, token: &ServiceAccountToken) -> Begun {
        let key = self.keys.of(&self.audience, token.expose());
        let mut shared = self.shared();
        if let Some(reviewed) = shared.memory.of(&key, Instant::now()) {
            metrics::counter!("token_reviews_cached_total").increment(1);
            return Begun::Remembered(reviewed);
        }
        if let Some(tell) = shared.under_way.get(&key) {
            metrics::counter!("token_reviews_joined_total").increment(1);
            return Begun::UnderWay(tell.subscribe());
        }
        let (tell, told) = watch::channel(None);
        let tell = Arc::new(tell);
        shared.under_way.insert(key, Arc::clone(&tell));
        let is_known = shared.memory.knows(&key);
        drop(shared);
        let run = Run { inner: Arc::clone(self), key, tell, is_known };
        tokio::spawn(run.run(token.clone()));
        Begun::UnderWay(told)
    }

    /// Asks about a token, or about our own. Where our own is not known, it is read again at once, and
    /// the API server is asked once more.
    async fn ask(
        &self,
        token: Option<&ServiceAccountToken>,
        deadline: Instant,
    ) -> Result<Asked, ReviewTrouble> {
        let first = self.ask_once(token, deadline).await?;
        if first.answer.status != http::StatusCode::UNAUTHORIZED {
            return Ok(first);
        }
        self.ask_once(token, deadline).await
    }

    async fn ask_once(
        &self,
        token: Option<&ServiceAccountToken>,
        deadline: Instant,
    ) -> Result<Asked, ReviewTrouble> {
        let soon = (Instant::now() + self.budget / 4).min(deadline);
        let means = self.files.read(soon).await;
        let about = match token {
            Some(token) => About::Theirs(token.clone()),
            None => About::Ours(means.token.clone()),
        };
        let request = request(&means.token, about.expose(), &self.audience);
        let (at, now) = (Instant::now(), (self.clock)());
        let answer = means.client.send(request, deadline).await?;
        Ok(Asked { answer, about, at, now })
    }

    /// Until when a review that was asked for at `at`, which is `now` by the clock, is given out.
    fn good_until(&self, token: &ServiceAccountToken, at: Instant, now: DateTime<Utc>) -> Instant {
        let left = token.expires_at().and_then(|expiry| (expiry - now).to_std().ok());
        at + self.cache_for.min(left.unwrap_or_default())
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One review, of whoever waits for it.
struct Run {
    inner: Arc<Inner>,
    key: Key,
    tell: Arc<Tell>,
    is_known: bool,
}

impl Run {
    async fn run(self, token: ServiceAccountToken) {
        let begun = Instant::now();
        let budget = self.inner.budget;
        let place = timeout_at(begun + budget / 2, self.inner.places.wait(self.is_known));
        let outcome = tokio::select! {
            biased;
            place = place => match place {
                Ok(_place) => self.reviewed(&token, begun + budget).await,
                Err(_) => Err(ReviewError::Busy),
            },
            // Who has gone must not fill the memory of those who wait.
            () = self.nobody_waits() => return,
        };
        self.end(outcome);
    }

    async fn reviewed(&self, token: &ServiceAccountToken, deadline: Instant) -> Outcome {
        let Asked { answer, about, at, now } = self.inner.ask(Some(token), deadline).await?;
        let audience = &self.inner.audience;
        let identity = verdict(answer.status, &answer.body, about.expose(), audience)?;
        let until = self.inner.good_until(token, at, now);
        Ok(Reviewed { account: identity.account, uid: identity.uid, pod: identity.pod, until })
    }

    /// Remembers what came out, and tells it: nobody can join any more before they are told.
    fn end(self, outcome: Outcome) {
        let mut shared = self.inner.shared();
        let word = match &outcome {
            Ok(reviewed) => {
                shared.memory.accepted(self.key, reviewed.clone(), Instant::now());
                "accepted"
            }
            Err(ReviewError::Refused(_)) => {
                shared.memory.refused(&self.key);
                "refused"
            }
            Err(ReviewError::Trouble(_)) => "trouble",
            Err(ReviewError::Busy) => "busy",
        };
        self.leave(&mut shared);
        drop(shared);
        metrics::counter!("token_reviews_total", "outcome" => word).increment(1);
        self.tell.send_replace(Some(outcome));
    }

    /// Returns when nobody waits for this review; nobody can join it then.
    async fn nobody_waits(&self) {
        loop {
            self.tell.closed().await;
            let mut shared = self.inner.shared();
            // Who joins holds the lock.
            if self.tell.is_closed() {
                self.leave(&mut shared);
                return;
            }
        }
    }

    fn leave(&self, shared: &mut Shared) {
        let ours = |tell: &Arc<Tell>| Arc::ptr_eq(tell, &self.tell);
        if shared.under_way.get(&self.key).is_some_and(ours) {
            shared.under_way.remove(&self.key);
        }
    }
}

/// Also where it panicked.
impl Drop for Run {
    fn drop(&mut self) {
        let mut shared = self.inner.shared();
        self.leave(&mut shared);
    }
}

/// What was asked, when, and what was answered.
struct Asked {
    answer: Answer,
    about: About,
    at: Instant,
    now: DateTime<Utc>,
}

enum About {
    Theirs(ServiceAccountToken),
    Ours(https_client::BearerToken),
}

impl About {
    fn expose(&self) -> &str {
        match self {
            Self::Theirs(token) => token.expose(),
            Self::Ours(token) => token.expose(),
        }
    }
}
