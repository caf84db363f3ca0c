//! How many requests wait for reviews.
//!
//! A request that waits has one of the places of all requests. So no kind of token may have more
//! than a part of them wait, and no single token more than a few.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::places::Rank;

/// So many requests with one token wait at the most. A Runtime has fewer at once.
pub(super) const MOST_FOR_ONE: usize = 32;

/// Which bound turned a request away, by its word in the metrics.
pub(super) type Bound = &'static str;

/// Seats for requests that wait.
pub(super) struct Seats {
    strangers: Arc<Semaphore>,
    claimed: Arc<Semaphore>,
    joiners: Arc<Semaphore>,
}

/// A seat, until it is dropped.
pub(super) struct Seat(
    #[expect(dead_code, reason = "held, never read")] Option<OwnedSemaphorePermit>,
);

impl Seats {
    /// Of so many requests in all a quarter may wait with tokens that nobody knows, a sixteenth more
    /// where those claim an account that is granted something, and a quarter may join the review of a
    /// known token; at least one each.
    pub(super) fn of(requests: usize) -> Self {
        let part = |divisor: usize| {
            Arc::new(Semaphore::new((requests / divisor).clamp(1, Semaphore::MAX_PERMITS)))
        };
        Self { strangers: part(4), claimed: part(16), joiners: part(4) }
    }

    /// A seat for a request with a token of this rank, for whose review so many wait already; `None`
    /// where it begins one.
    pub(super) fn take(&self, rank: Rank, waiting: Option<usize>) -> Result<Seat, Bound> {
        if waiting.is_some_and(|waiting| waiting >= MOST_FOR_ONE) {
            return Err("token");
        }
        let take = |seats: &Arc<Semaphore>| Arc::clone(seats).try_acquire_owned();
        let (taken, bound) = match rank {
            // One for each known token: nobody else can take it.
            Rank::Known if waiting.is_none() => return Ok(Seat(None)),
            Rank::Known => (take(&self.joiners), "joiners"),
            Rank::Claimed => (take(&self.claimed).or_else(|_| take(&self.strangers)), "strangers"),
            Rank::Stranger => (take(&self.strangers), "strangers"),
        };
        taken.map(|permit| Seat(Some(permit))).map_err(|_| bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(seats: &Seats, rank: Rank, waiting: Option<usize>) -> Vec<Seat> {
        std::iter::from_fn(|| seats.take(rank, waiting).ok()).take(1000).collect()
    }

    #[test]
    fn each_kind_has_its_part_and_fills_no_others() {
        let seats = Seats::of(256);
        let joiners = taken(&seats, Rank::Known, Some(1));
        assert_eq!(joiners.len(), 64);
        let claimed = taken(&seats, Rank::Claimed, None);
        assert_eq!(claimed.len(), 16 + 64, "its own and those of strangers");
        assert!(matches!(seats.take(Rank::Stranger, Some(1)), Err("strangers")));
        drop(claimed);
        let strangers = taken(&seats, Rank::Stranger, None);
        assert_eq!(strangers.len(), 64);
        let claimed = taken(&seats, Rank::Claimed, Some(1));
        assert_eq!(claimed.len(), 16, "whatever strangers do");
        assert!(matches!(seats.take(Rank::Known, Some(1)), Err("joiners")));
        assert_eq!(taken(&seats, Rank::Known, None).len(), 1000, "who begins needs none");
        drop(joiners);
        assert!(seats.take(Rank::Known, Some(1)).is_ok());
    }

    #[test]
    fn no_token_has_more_than_its_few() {
        let seats = Seats::of(65_536);
        for rank in [Rank::Known, Rank::Claimed, Rank::Stranger] {
            assert!(seats.take(rank, Some(MOST_FOR_ONE - 1)).is_ok());
            assert!(matches!(seats.take(rank, Some(MOST_FOR_ONE)), Err("token")));
        }
    }

    #[test]
    fn a_listener_of_one_request_has_one_of_each() {
        let seats = Seats::of(1);
        assert_eq!(taken(&seats, Rank::Known, Some(1)).len(), 1);
        assert_eq!(taken(&seats, Rank::Claimed, None).len(), 2);
    }
}
