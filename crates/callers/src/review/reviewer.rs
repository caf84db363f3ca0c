//! From a token to who it is.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use https_client::{Origin, RootsError, TokenFileError};
use ring::rand::SecureRandom;
use tokio::time::{Instant, timeout};

use super::{
    answer::is_review,
    api_server::{ApiServer, Asked},
    files::{Files, Unusable},
    key::Keys,
    memory::Memory,
    outcome::{ReviewError, Reviewed},
    places::{Place, Places, Rank},
    run::{Begun, UnderWay},
    seats::Seats,
};
use crate::{service_account::ServiceAccountToken, subjects::SubjectGrants};

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
    /// The time for the question, all of it, from when the review has its place. For that it waits
    /// half as long at the most.
    pub budget: Duration,
    /// For how long a good review is given out again, at most 10 s; 0 for not at all.
    pub cache_for: Duration,
    /// The most reviews at once, at least 3.
    pub in_flight: usize,
    /// How many requests of all kinds there may be at once. A part of them may wait for reviews.
    pub requests: usize,
    /// Who is granted something. Good reviews of nobody else are remembered, so that an account that
    /// is granted nothing stays a stranger.
    pub granted: SubjectGrants,
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

pub(super) struct Inner {
    pub(super) api_server: ApiServer,
    budget: Duration,
    cache_for: Duration,
    pub(super) granted: SubjectGrants,
    keys: Keys,
    places: Places,
    seats: Seats,
    shared: Mutex<Shared>,
}

/// What reviews and those who wait for them share.
pub(super) struct Shared {
    pub(super) memory: Memory,
    pub(super) under_way: UnderWay,
}

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
        let ReviewerSettings { origin, ca_file, token_file, audience, budget, granted, .. } =
            settings;
        let keys = Keys::new(random).map_err(|_| OpenError::Random)?;
        let files =
            Files::open(origin, token_file, ca_file).map_err(|unusable| match unusable {
                Unusable::Token(error) => OpenError::Token(error),
                Unusable::Ca(error) => OpenError::Ca(error),
            })?;
        let shared = Shared { memory: Memory::new(), under_way: UnderWay::default() };
        Ok(Self(Arc::new(Inner {
            api_server: ApiServer::new(files, audience, budget, clock),
            budget,
            cache_for: settings.cache_for.min(MOST_CACHED),
            granted,
            keys,
            places: Places::new(settings.in_flight),
            seats: Seats::of(settings.requests),
            shared: Mutex::new(shared),
        })))
    }

    /// Who a token is: as it was reviewed some seconds ago, or by a review that is under way or
    /// begins now. It takes half as long again as the budget at the most; where it has to ask once
    /// more, twice that.
    ///
    /// A review goes on when its caller hangs up, as others may wait for it.
    ///
    /// # Errors
    ///
    /// [`ReviewError`]. None is remembered: the next call asks again.
    pub async fn review(&self, token: &ServiceAccountToken) -> Result<Reviewed, ReviewError> {
        let until = Instant::now() + self.0.budget * 3 / 2;
        loop {
            let waits = match Inner::begin(&self.0, token)? {
                Begun::Remembered(reviewed) => return Ok(reviewed),
                Begun::Waits(waits) => waits,
            };
            let was_late = waits.is_late;
            match waits.outcome().await {
                // Who came when the API server was asked already would get it as what is remembered,
                // and its time is over. For who was there before, it is about a moment after they
                // came.
                Ok(reviewed) if was_late && reviewed.until <= Instant::now() => {
                    if Instant::now() >= until {
                        return Err(ReviewError::Busy);
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// Has our own reviewer's token reviewed: any review of it says that the API server answers us,
    /// whatever it says of the token. It has a place among those who are known.
    ///
    /// # Errors
    ///
    /// [`ReviewError::Trouble`], and [`ReviewError::Busy`] where there was no place in time, which
    /// says nothing of the API server.
    pub async fn probe(&self) -> Result<(), ReviewError> {
        let outcome = self.0.probed().await;
        let word = match &outcome {
            Ok(()) => "answered",
            Err(ReviewError::Busy) => "busy",
            Err(_) => "trouble",
        };
        metrics::counter!("token_review_probes_total", "outcome" => word).increment(1);
        outcome
    }
}

/// It holds secrets.
impl fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewer").finish_non_exhaustive()
    }
}

impl Inner {
    fn begin(self: &Arc<Self>, token: &ServiceAccountToken) -> Result<Begun, ReviewError> {
        let key = self.keys.of(self.api_server.audience(), token.expose());
        let remembered = |shared: &mut Shared| {
            let reviewed = shared.memory.of(&key, Instant::now())?;
            metrics::counter!("token_reviews_cached_total").increment(1);
            Some(Begun::Remembered(reviewed))
        };
        let is_known = {
            let mut shared = self.shared();
            if let Some(begun) = remembered(&mut shared) {
                return Ok(begun);
            }
            shared.memory.knows(&key)
        };
        // Read without the lock: it takes time, and strangers can make it do so.
        let claims = |account| self.granted.of(&account).is_some();
        let rank = if is_known {
            Rank::Known
        } else if token.claimed_account().is_some_and(claims) {
            Rank::Claimed
        } else {
            Rank::Stranger
        };
        let mut shared = self.shared();
        if let Some(begun) = remembered(&mut shared) {
            return Ok(begun);
        }
        let waiting = shared.under_way.waiting(&key);
        let seat = self.seats.take(rank, waiting).map_err(|bound| {
            metrics::counter!("token_reviews_turned_away_total", "bound" => bound).increment(1);
            ReviewError::Busy
        })?;
        let seat = match shared.under_way.join(&key, seat) {
            Ok(waits) => return Ok(Begun::Waits(waits)),
            Err(seat) => seat,
        };
        let (run, waits) = shared.under_way.begin(self, key, rank, seat);
        // A task that can't begin any more is dropped at once, which takes the lock.
        drop(shared);
        tokio::spawn(run.run(token.clone()));
        Ok(Begun::Waits(waits))
    }

    /// A place, or [`ReviewError::Busy`] where there is none in time.
    pub(super) async fn place(&self, rank: Rank) -> Result<Place, ReviewError> {
        let place = timeout(self.budget / 2, self.places.wait(rank)).await;
        place.map_err(|_| ReviewError::Busy)
    }

    async fn probed(&self) -> Result<(), ReviewError> {
        let _place = self.place(Rank::Known).await?;
        let Asked { answer, about, .. } = self.api_server.ask(None).await?;
        Ok(is_review(answer.status, &answer.body, about.expose())?)
    }

    /// Until when a review that was asked for at `at`, which is `now` by the clock, is given out.
    pub(super) fn good_until(
        &self,
        token: &ServiceAccountToken,
        at: Instant,
        now: DateTime<Utc>,
    ) -> Instant {
        let left = token.expires_at().and_then(|expiry| (expiry - now).to_std().ok());
        at + self.cache_for.min(left.unwrap_or_default())
    }

    pub(super) fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
