//! What a relay of events asks and notes.

use database::DatabaseError;

use super::Store;
use crate::{
    Event, SiteId,
    statements::outbox::{Published, ReadEvents, ReadPosition},
};

impl Store {
    /// The last event that was published; `None` where the Site had no event yet.
    pub(crate) async fn relay_position(&self, site: &SiteId) -> Result<Option<i64>, DatabaseError> {
        let rows = self.pool.load(ReadPosition { site: site.as_str().to_owned() }).await?;
        Ok(rows.into_iter().next().map(|(seq,)| seq))
    }

    /// The events after one, in order.
    pub(crate) async fn events(
        &self,
        site: &SiteId,
        after: i64,
        limit: u16,
    ) -> Result<Vec<Event>, DatabaseError> {
        let statement =
            ReadEvents { site: site.as_str().to_owned(), after, limit: i64::from(limit) };
        let rows = self.pool.load(statement).await?;
        let event = |(seq, id, kind, data, occurred_at): (i64, _, _, _, _)| Event {
            seq: seq.unsigned_abs(),
            id,
            kind,
            data,
            occurred_at,
        };
        Ok(rows.into_iter().map(event).collect())
    }

    /// Notes up to where events are published.
    pub(crate) async fn published(&self, site: &SiteId, seq: i64) -> Result<(), DatabaseError> {
        self.pool.load(Published { site: site.as_str().to_owned(), seq }).await.map(drop)
    }
}
