//! One review for all who bring its token meanwhile.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{sync::watch, time::Instant};

use super::{
    answer::verdict,
    api_server::Asked,
    key::Key,
    outcome::{ReviewError, ReviewTrouble, Reviewed},
    places::Rank,
    reviewer::{Inner, Shared},
    seats::Seat,
};
use crate::service_account::ServiceAccountToken;

/// What a review comes to.
pub(super) type Outcome = Result<Reviewed, ReviewError>;

/// What a request finds.
pub(super) enum Begun {
    /// Who the token is, by a review of the last seconds.
    Remembered(Reviewed),
    /// A review that is under way.
    Waits(Waits),
}

/// A request that waits for a review.
pub(super) struct Waits {
    told: watch::Receiver<Option<Outcome>>,
    _seat: Seat,
    /// Whether it came when the API server was asked already.
    pub(super) is_late: bool,
}

/// The reviews that are under way, by their tokens.
#[derive(Default)]
pub(super) struct UnderWay(HashMap<Key, Arc<Review>>);

/// What those who wait for a review share with it.
struct Review {
    tell: watch::Sender<Option<Outcome>>,
    is_asked: AtomicBool,
}

/// One review, of whoever waits for it.
pub(super) struct Run {
    inner: Arc<Inner>,
    key: Key,
    review: Arc<Review>,
    rank: Rank,
}

impl Waits {
    pub(super) async fn outcome(mut self) -> Outcome {
        let ended = || Err(ReviewTrouble::Ended.into());
        match self.told.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(ended),
            Err(_) => ended(),
        }
    }
}

impl UnderWay {
    /// How many requests wait for the review of a token, where there is one.
    pub(super) fn waiting(&self, key: &Key) -> Option<usize> {
        self.0.get(key).map(|review| review.tell.receiver_count())
    }

    /// Waits for a review that is under way. Without one the seat is given back.
    pub(super) fn join(&self, key: &Key, seat: Seat) -> Result<Waits, Seat> {
        let Some(review) = self.0.get(key) else { return Err(seat) };
        metrics::counter!("token_reviews_joined_total").increment(1);
        let is_late = review.is_asked.load(Ordering::Relaxed);
        Ok(Waits { told: review.tell.subscribe(), _seat: seat, is_late })
    }

    /// Begins one.
    pub(super) fn begin(
        &mut self,
        inner: &Arc<Inner>,
        key: Key,
        rank: Rank,
        seat: Seat,
    ) -> (Run, Waits) {
        let (tell, told) = watch::channel(None);
        let review = Arc::new(Review { tell, is_asked: AtomicBool::new(false) });
        self.0.insert(key, Arc::clone(&review));
        self.count();
        let run = Run { inner: Arc::clone(inner), key, review, rank };
        (run, Waits { told, _seat: seat, is_late: false })
    }

    fn remove(&mut self, key: &Key, ours: &Arc<Review>) {
        if self.0.get(key).is_some_and(|review| Arc::ptr_eq(review, ours)) {
            self.0.remove(key);
            self.count();
        }
    }

    fn count(&self) {
        metrics::gauge!("token_reviews_under_way").set(self.0.len() as f64);
    }
}

impl Run {
    pub(super) async fn run(self, token: ServiceAccountToken) {
        let outcome = tokio::select! {
            biased;
            place = self.inner.place(self.rank) => match place {
                Ok(_place) => self.reviewed(&token).await,
                Err(busy) => Err(busy),
            },
            // Who has gone must not fill the memory of those who wait.
            () = self.nobody_waits() => return,
        };
        self.end(outcome);
    }

    async fn reviewed(&self, token: &ServiceAccountToken) -> Outcome {
        let inner = &self.inner;
        // Under the lock, so that who joins is either there before or late.
        {
            let _shared = inner.shared();
            self.review.is_asked.store(true, Ordering::Relaxed);
        }
        let Asked { answer, about, at, now } = inner.api_server.ask(Some(token)).await?;
        let audience = inner.api_server.audience();
        let identity = verdict(answer.status, &answer.body, about.expose(), audience)?;
        let until = inner.good_until(token, at, now);
        Ok(Reviewed { account: identity.account, uid: identity.uid, pod: identity.pod, until })
    }

    /// Remembers what came out, and tells it: nobody can join any more before they are told.
    fn end(self, outcome: Outcome) {
        let mut shared = self.inner.shared();
        let word = match &outcome {
            Ok(reviewed) if self.inner.granted.of(&reviewed.account).is_some() => {
                shared.memory.accepted(self.key, reviewed.clone(), Instant::now());
                "accepted"
            }
            // Remembered, it could push out who is granted something.
            Ok(_) => "not_granted",
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
        self.review.tell.send_replace(Some(outcome));
    }

    /// Returns when nobody waits for this review; nobody can join it then.
    async fn nobody_waits(&self) {
        loop {
            self.review.tell.closed().await;
            let mut shared = self.inner.shared();
            // Who joins holds the lock.
            if self.review.tell.is_closed() {
                self.leave(&mut shared);
                return;
            }
        }
    }

    fn leave(&self, shared: &mut Shared) {
        shared.under_way.remove(&self.key, &self.review);
    }
}

/// Also where it panicked.
impl Drop for Run {
    fn drop(&mut self) {
        let mut shared = self.inner.shared();
        self.leave(&mut shared);
    }
}
