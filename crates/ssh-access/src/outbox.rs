//! The outbox: what happened, for others to be told, in the order in which it was committed.

use chrono::{DateTime, Utc};
use database::{DatabaseError, Pool};

use crate::{SiteId, store::Store};

/// Reads the events of one Site for a relay, with the role `ssh_access_process`.
///
/// The relay reads on from [`Outbox::position`], publishes in order, and notes what it has
/// published. When it dies between the two, the next one publishes some again: at least once.
#[derive(Clone)]
pub struct Outbox {
    store: Store,
    site: SiteId,
}

/// Something that happened with the keys of a Site. It names no key and no member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place among the events of the Site: 1 and up, without a gap, in the order of commits.
    pub seq: u64,
    /// Its own id, a UUID: the same each time it is published.
    pub id: String,
    /// `ssh.removals.overdue`, `ssh.removals.enforced`, `ssh.set.mismatched` or `ssh.set.matched`.
    pub kind: String,
    /// A JSON object with the Site and what the kind has beyond it.
    pub data: String,
    /// When it happened, by the database's clock.
    pub occurred_at: DateTime<Utc>,
}

impl Outbox {
    /// The events of `site`, read through `pool`.
    #[must_use]
    pub fn new(pool: Pool, site: SiteId) -> Self {
        Self { store: Store::new(pool), site }
    }

    /// The last event that was published, by whomever; 0 before the first. A Site whose position
    /// was asked for once keeps its events until they are published.
    ///
    /// # Errors
    ///
    /// The database failed.
    pub async fn position(&self) -> Result<u64, DatabaseError> {
        let position = self.store.relay_position(&self.site).await?;
        Ok(position.unwrap_or_default().unsigned_abs())
    }

    /// The events after one, in order and without a gap, at most `limit`.
    ///
    /// # Errors
    ///
    /// The database failed.
    pub async fn next(&self, after: u64, limit: u16) -> Result<Vec<Event>, DatabaseError> {
        self.store.events(&self.site, number(after), limit).await
    }

    /// Notes that everything up to an event is published. The position never moves back.
    ///
    /// # Errors
    ///
    /// The database failed; noting it again is safe.
    pub async fn published(&self, seq: u64) -> Result<(), DatabaseError> {
        self.store.published(&self.site, number(seq)).await
    }
}

/// A sequence as the database has it; there is none beyond its largest.
fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
