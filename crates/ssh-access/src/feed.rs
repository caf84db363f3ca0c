//! The side of a process that serves the agent of a Site.

use std::{future::Future, time::Duration};

use database::Pool;
use ssh_keys::{Cursor, Digest, SetDigest};
use tokio::time::{Instant, timeout_at};

use crate::{
    AcknowledgeError, Acknowledged, Acknowledgement, Attested, ChangePage, ChangesError, Failures,
    ReadError, SiteId, Snapshot, Wakeups, Window,
    store::{State, Store, read_state},
};

/// What the agent of one Site reads and acknowledges, with the role `ssh_access_api`. Cloning shares
/// the connections.
#[derive(Clone)]
pub struct Feed {
    store: Store,
    wakeups: Wakeups,
    window: Window,
}

impl Feed {
    /// Changes in one answer at the most.
    pub const MOST_CHANGES: u16 = 1000;

    /// How often something is run again when others move the feed on at the same moment.
    const TRIES: usize = 8;

    /// Serves the Site of `wakeups` through `pool`. `window` is the propagation window; where the
    /// process that propagates has a shorter one, that counts.
    #[must_use]
    pub fn new(pool: Pool, wakeups: Wakeups, window: Window) -> Self {
        Self { store: Store::new(pool), wakeups, window }
    }

    /// The Site.
    #[must_use]
    pub fn site(&self) -> &SiteId {
        self.wakeups.site()
    }

    /// Changes after a cursor, at most `limit` and never more than [`Feed::MOST_CHANGES`]. Reading
    /// claims nothing. Where there is nothing new it waits up to `wait` for something, without a
    /// connection, and ends its wait when `stop` does.
    ///
    /// # Errors
    ///
    /// The cursor is none of the feed, or is below its oldest change.
    pub async fn changes(
        &self,
        after: Cursor,
        limit: u16,
        wait: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<ChangePage, ChangesError> {
        // A wait that no clock can hold ends with its caller.
        let deadline = Instant::now().checked_add(wait);
        let mut stop = std::pin::pin!(stop);
        // Before the read, so that nothing falls between.
        let mut woken = self.wakeups.subscribe();
        loop {
            woken.mark_unchanged();
            let page = self.changes_now(after, limit).await?;
            if !page.changes.is_empty() || wait.is_zero() {
                return Ok(page);
            }
            let news = async {
                // The sender lives as long as this feed.
                let _ = woken.changed().await;
            };
            let waited = async {
                match deadline {
                    Some(deadline) => timeout_at(deadline, news).await.is_ok(),
                    None => {
                        news.await;
                        true
                    }
                }
            };
            let is_new = tokio::select! {
                is_new = waited => is_new,
                () = &mut stop => false,
            };
            if !is_new {
                // Once more: the lease counts from the end of the wait.
                return self.changes_now(after, limit).await;
            }
        }
    }

    async fn changes_now(&self, after: Cursor, limit: u16) -> Result<ChangePage, ChangesError> {
        for _ in 0..Self::TRIES {
            let state = self.store.state(self.site(), after.seq(), self.window).await?;
            check_place(&state, after)?;
            let mut page = ChangePage {
                changes: Vec::new(),
                next: after,
                head: state.head,
                read_at: state.read_at,
                lease_until: state.lease_until,
                waits_since: state.waits_since,
            };
            if after.seq() < state.head.seq() {
                let limit = limit.clamp(1, Self::MOST_CHANGES);
                let changes = self.store.changes(self.site(), after.seq(), limit).await?;
                let follows = |(change, _): &(crate::Change, Cursor)| change.seq == after.seq() + 1;
                if !changes.first().is_some_and(follows) {
                    // The beginning was taken away in between.
                    continue;
                }
                page.next = changes.last().map_or(after, |(_, place)| *place);
                page.changes = changes.into_iter().map(|(change, _)| change).collect();
                if page.next.seq() > page.head.seq() {
                    page.head = page.next;
                }
            }
            return Ok(page);
        }
        Err(ReadError::Corrupt("a feed has a gap").into())
    }

    /// Everything that is in force, of one moment.
    ///
    /// # Errors
    ///
    /// The read failed.
    pub async fn snapshot(&self) -> Result<Snapshot, ReadError> {
        let mut transaction = self.store.pool().read().await?;
        let state = read_state(&mut transaction, self.site(), 0, self.window).await?;
        Ok(Snapshot {
            head: state.head,
            read_at: state.read_at,
            lease_until: state.lease_until,
            site: self.site().clone(),
            transaction: Some(transaction),
            last: None,
        })
    }

    /// Stores what the agent has made durable. It moves forward only: an older place than the stored
    /// one changes nothing, and the answer says what is stored. Where the agent brings the digest of
    /// its set at the head, the set that is in force there is read and compared.
    ///
    /// # Errors
    ///
    /// The cursor or the chain digest is none of the feed.
    pub async fn acknowledge(
        &self,
        acknowledgement: &Acknowledgement,
    ) -> Result<Acknowledged, AcknowledgeError> {
        if acknowledgement.chain_digest != acknowledgement.cursor.digest() {
            return Err(AcknowledgeError::Unknown);
        }
        let attested = self.attest(acknowledgement).await?;
        for _ in 0..Self::TRIES {
            let stored = self.store.acknowledge(self.site(), acknowledgement, attested).await?;
            let cursor = acknowledgement.cursor;
            match stored.stored {
                Some(place) if stored.new || place.seq() > cursor.seq() => {
                    return Ok(Acknowledged {
                        cursor: place,
                        head: stored.head,
                        attested: attested.filter(|_| stored.new),
                        stored_at: stored.at,
                    });
                }
                _ if cursor.seq() < stored.floor => return Err(AcknowledgeError::Compacted),
                _ if stored.digest != Some(cursor.digest()) => {
                    return Err(AcknowledgeError::Unknown);
                }
                // A newer one was stored after this statement began.
                _ => {}
            }
        }
        Err(AcknowledgeError::Contended)
    }

    /// Compares the digest of a set, where one was sent, with what is in force at the same place.
    async fn attest(
        &self,
        acknowledgement: &Acknowledgement,
    ) -> Result<Option<Attested>, AcknowledgeError> {
        let Some(theirs) = acknowledgement.set_digest else { return Ok(None) };
        let mut snapshot = self.snapshot().await?;
        if snapshot.head() != acknowledgement.cursor {
            return Ok(Some(Attested::Behind));
        }
        let ours = set_digest(&mut snapshot, &acknowledgement.failures).await?;
        Ok(Some(if ours == theirs { Attested::Match } else { Attested::Mismatch }))
    }
}

/// The digest of what is in force without what failed.
async fn set_digest(snapshot: &mut Snapshot, failures: &Failures) -> Result<Digest, ReadError> {
    let mut digest = SetDigest::new();
    while let Some(part) = snapshot.next().await? {
        for key in part.iter().filter(|key| !failures.names(&key.unix_user, &key.key_id)) {
            digest
                .add(&key.unix_user, &key.key_id, &key.key)
                .map_err(|_| ReadError::Corrupt("the order of a set"))?;
        }
    }
    Ok(digest.finish())
}

/// Whether a cursor is a place of the feed after which everything is there.
fn check_place(state: &State, cursor: Cursor) -> Result<(), ChangesError> {
    if cursor.seq() > state.head.seq() {
        return Err(ChangesError::Unknown);
    }
    if cursor.seq() < state.floor {
        return Err(ChangesError::Compacted);
    }
    if state.digest != Some(cursor.digest()) {
        return Err(ChangesError::Unknown);
    }
    Ok(())
}
