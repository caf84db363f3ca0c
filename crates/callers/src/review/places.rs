//! How many reviews are under way at once, and who waits.
//!
//! Who is known has places of their own beside those for everybody: a flood of tokens that nobody
//! knows fills those for everybody and no other.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places for reviews. Each queue is served in the order of arrival.
#[derive(Clone)]
pub(super) struct Places {
    everybody: Arc<Semaphore>,
    known: Arc<Semaphore>,
}

/// A place, until it is dropped.
pub(super) struct Place(#[expect(dead_code, reason = "held, never read")] OwnedSemaphorePermit);

impl Places {
    /// So many in all, at least two. A quarter, at least one, is for those who are known.
    pub(super) fn new(all: usize) -> Self {
        let all = all.clamp(2, Semaphore::MAX_PERMITS);
        let known = (all / 4).max(1);
        Self {
            everybody: Arc::new(Semaphore::new(all - known)),
            known: Arc::new(Semaphore::new(known)),
        }
    }

    /// Waits for a place.
    pub(super) async fn wait(&self, is_known: bool) -> Place {
        let for_everybody = place(&self.everybody);
        if !is_known {
            return for_everybody.await;
        }
        tokio::select! {
            biased;
            place = place(&self.known) => place,
            place = for_everybody => place,
        }
    }
}

async fn place(of: &Arc<Semaphore>) -> Place {
    let permit = Arc::clone(of).acquire_owned().await;
    Place(permit.expect("nobody closes the semaphore"))
}
