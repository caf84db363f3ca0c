//! Who brings changes of keys and accounts to the feed of a Site.

mod run;
mod upkeep;

use std::time::Duration;

use database::Pool;
use ring::rand::SecureRandom;
use ssh_keys::{ChangeFields, Cursor};
use tokio::time::Instant;

pub use self::{
    run::{Leadership, Progress},
    upkeep::Watched,
};
use crate::{
    PropagateError, ReadError, SiteId, Window,
    announcer::{announce, channel},
    statements::propagator::Propagate,
    store::{Due, Store, Wanted},
};

/// Brings changes of keys and accounts to the feed of one Site, with the role `ssh_access_process`.
///
/// Of several for one Site one works: it has a lease in the database, and everything that it writes
/// compares the fence of that lease, in the transaction of the writing. One that was paused while
/// another took over writes nothing.
pub struct Propagator {
    store: Store,
    site: SiteId,
    window: Window,
    /// This process among all that want the lease.
    holder: String,
    limits: PropagatorLimits,
}

/// The times of a [`Propagator`].
#[derive(Clone, Copy, Debug)]
pub struct PropagatorLimits {
    /// How long a lease goes: so long after a kill another one takes over. It is kept at a third.
    pub lease: Duration,
    /// The time between two looks, where no hint comes.
    pub tick: Duration,
    /// The time between two looks at the agent.
    pub watch: Duration,
    /// The time between two compactions.
    pub compact: Duration,
    /// How old a change is at least that is taken away once it was acknowledged.
    pub acknowledged_for: Duration,
    /// How old a change is that is taken away also where the agent is silent. It then takes a snapshot.
    pub any_for: Duration,
    /// How old an event is that is taken away, unless a relay has still to publish it.
    pub events_for: Duration,
}

impl Default for PropagatorLimits {
    /// 15 s, 1 s, 5 s, 60 s, a day, thirty days, four hundred days.
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(86_400);
        Self {
            lease: Duration::from_secs(15),
            tick: Duration::from_secs(1),
            watch: Duration::from_secs(5),
            compact: Duration::from_secs(60),
            acknowledged_for: DAY,
            any_for: DAY * 30,
            events_for: DAY * 400,
        }
    }
}

/// A lease that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    fence: i64,
}

impl Lease {
    /// Its fence, which grows with each lease of the Site.
    #[must_use]
    pub fn fence(self) -> i64 {
        self.fence
    }
}

impl Propagator {
    /// Members that are looked at in one step. Each has few keys, so a step writes some hundred rows
    /// at the most, and is done in a moment.
    const MEMBERS: u16 = 64;

    /// Prepares the propagation to `site`. Nothing is written before a lease is taken.
    ///
    /// # Errors
    ///
    /// The random source failed, so that this process can't be told from others.
    pub fn new(
        pool: Pool,
        site: SiteId,
        window: Window,
        limits: PropagatorLimits,
        random: &dyn SecureRandom,
    ) -> Result<Self, ring::error::Unspecified> {
        let mut bytes = [0; 16];
        random.fill(&mut bytes)?;
        Ok(Self { store: Store::new(pool), site, window, holder: hex::encode(bytes), limits })
    }

    /// Takes the lease; `None` where somebody else has it. Taking it again gives a new one, and what
    /// was sent with the old one no longer counts.
    ///
    /// # Errors
    ///
    /// The database failed.
    pub async fn acquire(&self) -> Result<Option<Lease>, PropagateError> {
        let limits = &self.limits;
        let fence = self.store.acquire(&self.site, &self.holder, limits.lease, self.window).await?;
        Ok(fence.map(|fence| Lease { fence }))
    }

    /// Keeps the lease for another term.
    ///
    /// # Errors
    ///
    /// It is lost, or the database failed.
    pub async fn renew(&self, lease: Lease) -> Result<(), PropagateError> {
        let kept = self.store.renew(&self.site, lease.fence, self.limits.lease).await?;
        if kept { Ok(()) } else { Err(PropagateError::LeaseLost) }
    }

    /// Gives the lease back, so that another need not wait for its end.
    ///
    /// # Errors
    ///
    /// The database failed; the lease then ends by itself.
    pub async fn release(&self, lease: Lease) -> Result<(), PropagateError> {
        Ok(self.store.release(&self.site, lease.fence).await?)
    }

    /// Brings what waits to the feed, members by members, until nothing is left. Returns how many
    /// changes were written.
    ///
    /// # Errors
    ///
    /// The lease is lost, or the database failed. What was written so far stays, and is whole.
    pub async fn propagate(&self, lease: Lease) -> Result<u64, PropagateError> {
        let mut renewed = Instant::now();
        self.spread().await?;
        let mut written = 0;
        loop {
            // Much may wait, after an import or a pause.
            if renewed.elapsed() >= self.limits.lease / 3 {
                self.renew(lease).await?;
                renewed = Instant::now();
            }
            let Some(due) = self.store.due(&self.site, Self::MEMBERS).await? else {
                return Err(PropagateError::LeaseLost);
            };
            if due.members.is_empty() {
                break;
            }
            written += self.step(lease, due).await?;
        }
        Ok(written)
    }

    /// Brings members of whom something changed to their Sites, and tells the others.
    async fn spread(&self) -> Result<(), PropagateError> {
        loop {
            let (taken, sites) = self.store.spread().await?;
            let others: Vec<_> =
                sites.into_iter().filter(|site| site != self.site.as_str()).collect();
            if !others.is_empty() {
                announce(&self.store, vec![crate::announcer::CHANGED_CHANNEL.to_owned()]).await;
            }
            if taken == 0 {
                return Ok(());
            }
        }
    }

    /// One step: the difference for some members, written in one transaction.
    async fn step(&self, lease: Lease, due: Due) -> Result<u64, PropagateError> {
        let members = due.members.iter().map(|(member, _)| member.clone()).collect();
        let wanted = self.store.difference(&self.site, members, due.window_seconds).await?;
        let written = wanted.len() as u64;
        let changes = self.changes(lease, due, wanted)?;
        // Where it is refused, somebody else has the lease: while it is ours nobody else moves the head.
        if !self.store.propagate(changes).await? {
            return Err(PropagateError::LeaseLost);
        }
        if written > 0 {
            announce(&self.store, vec![channel(&self.site)]).await;
        }
        Ok(written)
    }

    fn changes(
        &self,
        lease: Lease,
        due: Due,
        wanted: Vec<Wanted>,
    ) -> Result<Propagate, PropagateError> {
        let mut changes = Propagate {
            site: self.site.as_str().to_owned(),
            fence: lease.fence,
            head: due.head.seq(),
            head_digest: due.head.digest().as_bytes().to_vec(),
            ..Propagate::default()
        };
        let mut place = due.head;
        for change in wanted {
            let (after, digest) = follow(place, &change)?;
            place = after;
            changes.operations.push(change.operation.as_str().to_owned());
            changes.unix_users.push(change.unix_user);
            changes.key_ids.push(change.key_id);
            changes.members.push(change.member);
            changes.public_keys.push(change.public_key);
            changes.expires_at.push(change.expires_at);
            changes.enforce_by.push(change.enforce_by);
            changes.digests.push(digest);
            changes.chain_digests.push(place.digest().as_bytes().to_vec());
        }
        for (member, last) in due.members {
            if let Some(last) = last {
                changes.seen_members.push(member);
                changes.seen_changes.push(last);
            }
        }
        Ok(changes)
    }
}

/// The place after a change, and the change's digest.
fn follow(place: Cursor, change: &Wanted) -> Result<(Cursor, Vec<u8>), ReadError> {
    let fields = ChangeFields {
        seq: place.seq() + 1,
        operation: change.operation,
        unix_user: &change.unix_user,
        key_id: &change.key_id,
        member_id: &change.member,
        public_key: change.public_key.as_deref(),
        expires_at: change.expires_at,
        enforce_by: change.enforce_by,
    };
    let digest = fields.digest();
    let after = place.after(digest).ok_or(ReadError::Corrupt("a feed without an end"))?;
    Ok((after, digest.as_bytes().to_vec()))
}
