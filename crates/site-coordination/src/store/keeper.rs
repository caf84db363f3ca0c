//! What the keeper deletes.

use database::DatabaseError;

use super::Store;
use crate::{
    Environment, ReadError, SiteId, Stream,
    statements::keeper::{
        Batch, PruneCommandBodies, PruneEvents, PruneOutputs, PruneResultBodies, PruneRows,
        PrunedRow, ReadEventSites, ReadStreams, Trim,
    },
};

/// What one deletion took.
pub(crate) struct PrunedBatch {
    pub(crate) rows: u64,
    /// The last sequence of it; absent where nothing was left to take.
    pub(crate) last: Option<i64>,
}

impl Store {
    pub(crate) async fn streams(&self) -> Result<Vec<Stream>, ReadError> {
        let rows = self.pool.load(ReadStreams).await?;
        rows.into_iter()
            .map(|(site, environment)| {
                let environment = Environment::parse(&environment)
                    .map_err(|_| ReadError::Corrupt("an environment"))?;
                Ok(Stream { site: site_id(&site)?, environment })
            })
            .collect()
    }

    pub(crate) async fn event_sites(&self) -> Result<Vec<SiteId>, ReadError> {
        let rows = self.pool.load(ReadEventSites).await?;
        rows.into_iter().map(|(site,)| site_id(&site)).collect()
    }

    /// Moves the trimmed place; false where there was nothing to move over.
    pub(crate) async fn trim(
        &self,
        stream: &Stream,
        days: i32,
        limit: i64,
    ) -> Result<bool, DatabaseError> {
        let statement = Trim {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            days,
            limit,
        };
        Ok(!self.pool.load(statement).await?.is_empty())
    }

    pub(crate) async fn prune_command_bodies(
        &self,
        stream: &Stream,
        after: i64,
        limit: i64,
    ) -> Result<PrunedBatch, ReadError> {
        pruned(self.pool.load(PruneCommandBodies(batch(stream, after, limit))).await?)
    }

    pub(crate) async fn prune_result_bodies(
        &self,
        stream: &Stream,
        after: i64,
        limit: i64,
    ) -> Result<PrunedBatch, ReadError> {
        pruned(self.pool.load(PruneResultBodies(batch(stream, after, limit))).await?)
    }

    /// `limit` counts commands, which have several outputs each.
    pub(crate) async fn prune_outputs(
        &self,
        stream: &Stream,
        after: i64,
        limit: i64,
    ) -> Result<PrunedBatch, ReadError> {
        pruned(self.pool.load(PruneOutputs(batch(stream, after, limit))).await?)
    }

    /// `limit` counts commands; the receipts and marks of each go with it.
    pub(crate) async fn prune_rows(
        &self,
        stream: &Stream,
        after: i64,
        limit: i64,
        days: i32,
    ) -> Result<PrunedBatch, ReadError> {
        let statement = PruneRows { batch: batch(stream, after, limit), days };
        pruned(self.pool.load(statement).await?)
    }

    pub(crate) async fn prune_events(
        &self,
        site: &SiteId,
        after: i64,
        limit: i64,
        days: i32,
    ) -> Result<PrunedBatch, ReadError> {
        let statement = PruneEvents { site: site.as_str().to_owned(), after, limit, days };
        pruned(self.pool.load(statement).await?)
    }
}

fn batch(stream: &Stream, after: i64, limit: i64) -> Batch {
    Batch {
        site: stream.site.as_str().to_owned(),
        environment: stream.environment.as_str(),
        after,
        limit,
    }
}

fn pruned(rows: Vec<PrunedRow>) -> Result<PrunedBatch, ReadError> {
    let (rows, last) = rows.first().ok_or(ReadError::Corrupt("a count without a row"))?;
    Ok(PrunedBatch { rows: rows.unsigned_abs(), last: *last })
}

fn site_id(text: &str) -> Result<SiteId, ReadError> {
    SiteId::parse(text).map_err(|_| ReadError::Corrupt("a Site"))
}
