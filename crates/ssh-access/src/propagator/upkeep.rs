//! What whoever has the lease does beside propagation: it takes away what is old, and watches the agent.

use std::time::Duration;

use super::{Lease, Propagator};
use crate::{Attested, PropagateError};

/// How far the agent of a Site is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watched {
    /// The last change.
    pub head: i64,
    /// The last change that the agent has acknowledged; none where it never did.
    pub acknowledged: Option<i64>,
    /// For how long it has acknowledged nothing.
    pub silent_for: Option<Duration>,
    /// Removals whose time is over and that the agent has not acknowledged, or could not apply. It
    /// counts to ten thousand.
    pub removals_overdue: u64,
    /// What the agent could not apply.
    pub failing: u32,
    /// What the last comparison of its set gave.
    pub attested: Option<Attested>,
    /// For how long a change has been waiting to be propagated.
    pub waiting_for: Option<Duration>,
    /// How many events were written because something of this has changed.
    pub events: u64,
}

impl Propagator {
    /// Takes the beginning of the feed away and returns how many changes went.
    ///
    /// # Errors
    ///
    /// The lease is lost, or the database failed.
    pub async fn compact(&self, lease: Lease) -> Result<u64, PropagateError> {
        let mut all = 0;
        loop {
            let limits = &self.limits;
            let (acknowledged, any) = (limits.acknowledged_for, limits.any_for);
            let gone = self.store.compact(&self.site, lease.fence, acknowledged, any).await?;
            match gone.ok_or(PropagateError::LeaseLost)? {
                0 => return Ok(all),
                gone => all += gone.unsigned_abs(),
            }
        }
    }

    /// Takes old events out of the outbox and returns how many went.
    ///
    /// # Errors
    ///
    /// The lease is lost, or the database failed.
    pub async fn prune_events(&self, lease: Lease) -> Result<u64, PropagateError> {
        let mut all = 0;
        loop {
            let age = self.limits.events_for;
            let gone = self.store.prune_events(&self.site, lease.fence, age).await?;
            match gone.ok_or(PropagateError::LeaseLost)? {
                0 => return Ok(all),
                gone => all += gone.unsigned_abs(),
            }
        }
    }

    /// How far the agent of the Site is. What changed of that is an event.
    ///
    /// # Errors
    ///
    /// The lease is lost, or the database failed.
    pub async fn watch(&self, lease: Lease) -> Result<Watched, PropagateError> {
        let watched = self.store.watch(&self.site, lease.fence).await?;
        watched.ok_or(PropagateError::LeaseLost)
    }
}
