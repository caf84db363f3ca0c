//! What whoever propagates asks and writes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::DatabaseError;
use ssh_keys::{Cursor, Operation};

use super::{Store, cursor, known};
use crate::{
    Attested, ReadError, SiteId, Watched, Window,
    statements::propagator::{
        Acquire, Compact, Propagate, PruneEvents, ReadDifference, ReadDue, Release, Renew, Spread,
        Watch,
    },
};

/// What there is to look at, and the place of the feed that it would follow.
pub(crate) struct Due {
    pub(crate) head: Cursor,
    pub(crate) window_seconds: i32,
    /// Members, and the last change of each that is noted; none for a key that expired.
    pub(crate) members: Vec<(String, Option<i64>)>,
}

/// What has to change. Texts are what the database holds: nobody here looks into them.
pub(crate) struct Wanted {
    pub(crate) operation: Operation,
    pub(crate) unix_user: String,
    pub(crate) key_id: String,
    pub(crate) member: String,
    pub(crate) public_key: Option<String>,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) enforce_by: Option<DateTime<Utc>>,
}

impl Store {
    /// Takes the lease and returns its fence; `None` where somebody else has it.
    pub(crate) async fn acquire(
        &self,
        site: &SiteId,
        holder: &str,
        lease: Duration,
        window: Window,
    ) -> Result<Option<i64>, DatabaseError> {
        let statement = Acquire {
            site: site.as_str().to_owned(),
            holder: holder.to_owned(),
            seconds: lease.as_secs_f64(),
            window: window.seconds(),
        };
        Ok(self.pool.load(statement).await?.into_iter().next().map(|(fence,)| fence))
    }

    /// Keeps the lease; false where it is lost.
    pub(crate) async fn renew(
        &self,
        site: &SiteId,
        fence: i64,
        lease: Duration,
    ) -> Result<bool, DatabaseError> {
        let site = site.as_str().to_owned();
        let rows = self.pool.load(Renew { site, fence, seconds: lease.as_secs_f64() }).await?;
        Ok(!rows.is_empty())
    }

    /// Gives the lease back.
    pub(crate) async fn release(&self, site: &SiteId, fence: i64) -> Result<(), DatabaseError> {
        self.pool.load(Release { site: site.as_str().to_owned(), fence }).await.map(drop)
    }

    /// Brings members of whom something changed to their Sites: how many changes it took, and the Sites
    /// that have something to do now.
    pub(crate) async fn spread(&self) -> Result<(i64, Vec<String>), DatabaseError> {
        Ok(self.pool.load(Spread).await?.into_iter().next().unwrap_or_default())
    }

    /// What there is to look at; `None` where the Site has no feed.
    pub(crate) async fn due(&self, site: &SiteId, limit: u16) -> Result<Option<Due>, ReadError> {
        let statement = ReadDue { site: site.as_str().to_owned(), limit: i64::from(limit) };
        let rows = self.pool.load(statement).await?;
        let Some((head, digest, window_seconds, _, _)) = rows.first() else { return Ok(None) };
        let (head, window_seconds) = (cursor(*head, digest)?, *window_seconds);
        let members = rows.into_iter().filter_map(|(_, _, _, member, last)| Some((member?, last)));
        Ok(Some(Due { head, window_seconds, members: members.collect() }))
    }

    /// What has to change so that some members' keys are in force as they should be.
    pub(crate) async fn difference(
        &self,
        site: &SiteId,
        members: Vec<String>,
        window_seconds: i32,
    ) -> Result<Vec<Wanted>, ReadError> {
        let statement = ReadDifference {
            site: site.as_str().to_owned(),
            members,
            window: f64::from(window_seconds),
        };
        let rows = self.pool.load(statement).await?;
        rows.into_iter()
            .map(|(operation, unix_user, key_id, member, public_key, expires_at, enforce_by)| {
                let operation = known(Operation::parse(&operation), "an operation")?;
                Ok(Wanted {
                    operation,
                    unix_user,
                    key_id,
                    member,
                    public_key,
                    expires_at,
                    enforce_by,
                })
            })
            .collect()
    }

    /// Writes changes and moves the head; false where the lease is lost or the head is another one.
    pub(crate) async fn propagate(&self, changes: Propagate) -> Result<bool, DatabaseError> {
        Ok(!self.pool.load(changes).await?.is_empty())
    }

    /// Takes the beginning of the feed away and says how many changes went; `None` where the lease is
    /// lost.
    pub(crate) async fn compact(
        &self,
        site: &SiteId,
        fence: i64,
        acknowledged: Duration,
        any: Duration,
    ) -> Result<Option<i64>, DatabaseError> {
        let statement = Compact {
            site: site.as_str().to_owned(),
            fence,
            acknowledged_seconds: acknowledged.as_secs_f64(),
            any_seconds: any.as_secs_f64(),
        };
        Ok(self.pool.load(statement).await?.into_iter().next().map(|(gone,)| gone))
    }

    /// Deletes events that are older than that and not left to publish, and says how many went; `None`
    /// where the lease is lost.
    pub(crate) async fn prune_events(
        &self,
        site: &SiteId,
        fence: i64,
        age: Duration,
    ) -> Result<Option<i64>, DatabaseError> {
        let site = site.as_str().to_owned();
        let statement = PruneEvents { site, fence, seconds: age.as_secs_f64() };
        Ok(self.pool.load(statement).await?.into_iter().next().map(|(gone,)| gone))
    }

    /// How far the Site is, told where that changed; `None` where the lease is lost.
    pub(crate) async fn watch(
        &self,
        site: &SiteId,
        fence: i64,
    ) -> Result<Option<Watched>, ReadError> {
        let rows = self.pool.load(Watch { site: site.as_str().to_owned(), fence }).await?;
        let Some(row) = rows.into_iter().next() else { return Ok(None) };
        let (head, acknowledged, age, overdue, failing, attested, waiting, events) = row;
        let attested = match attested.as_deref() {
            None => None,
            Some("match") => Some(Attested::Match),
            Some("mismatch") => Some(Attested::Mismatch),
            Some(_) => return Err(ReadError::Corrupt("a comparison of a set")),
        };
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Ok(Some(Watched {
            head,
            acknowledged,
            silent_for: age.map(seconds),
            removals_overdue: overdue.unsigned_abs(),
            failing: failing.unsigned_abs(),
            attested,
            waiting_for: waiting.map(|waiting| Duration::from_secs(waiting.max(0).unsigned_abs())),
            events: events.unsigned_abs(),
        }))
    }
}
