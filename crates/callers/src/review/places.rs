//! How many reviews are under way at once, and who waits.
//!
//! Who is known has places of their own beside those for everybody, and so has who claims to be one
//! that is granted something: a flood of tokens that nobody knows fills those for everybody, and one
//! that names a subject of the maps those for claims as well, and no other.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is known of a token before its review. It decides where the token waits, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// Its last review was good, and its account is granted something.
    Known,
    /// It says itself that it is of an account that is granted something, as anybody can.
    Claimed,
    /// Nothing is.
    Stranger,
}

/// Places for reviews. Each queue is served in the order of arrival.
pub(super) struct Places {
    everybody: Arc<Semaphore>,
    known: Arc<Semaphore>,
    claimed: Arc<Semaphore>,
}

/// A place, until it is dropped.
pub(super) struct Place(#[expect(dead_code, reason = "held, never read")] OwnedSemaphorePermit);

impl Places {
    /// So many in all, at least three. A quarter is for those who are known and an eighth for claims,
    /// at least one each.
    pub(super) fn new(all: usize) -> Self {
        let all = all.clamp(3, Semaphore::MAX_PERMITS);
        let (known, claimed) = ((all / 4).max(1), (all / 8).max(1));
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            everybody: places(all - known - claimed),
            known: places(known),
            claimed: places(claimed),
        }
    }

    /// Waits for a place.
    pub(super) async fn wait(&self, rank: Rank) -> Place {
        let for_everybody = place(&self.everybody);
        let own = match rank {
            Rank::Known => &self.known,
            Rank::Claimed => &self.claimed,
            Rank::Stranger => return for_everybody.await,
        };
        tokio::select! {
            biased;
            place = place(own) => place,
            place = for_everybody => place,
        }
    }
}

async fn place(of: &Arc<Semaphore>) -> Place {
    let permit = Arc::clone(of).acquire_owned().await;
    Place(permit.expect("nobody closes the semaphore"))
}
