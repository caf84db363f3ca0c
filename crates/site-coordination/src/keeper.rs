//! Retention: what is old and has an ending goes, bodies first, receipts long after them.

use database::Pool;

use crate::{
    ReadError, SiteId, Stream,
    store::{PrunedBatch, Store},
};

/// Deletes what retention allows, with the role `site_coordination_keeper`, beside everything that
/// goes on in the streams.
pub struct Keeper {
    store: Store,
}

/// How long things are kept, in days from the ending of their command; events from when they
/// happened. The database's clock counts. At most 36,500 days; more counts as that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Bodies of commands and results, and private outputs.
    pub bodies: u32,
    /// The rows of commands with their receipts and marks: as long, the same result is
    /// acknowledged again, and the same key stands for the same command. Never shorter than
    /// `bodies`, which go first.
    pub receipts: u32,
    /// Events. One that the relay of its Site has still to publish is kept for longer.
    pub events: u32,
}

impl Default for Retention {
    /// 30, 400 and 400 days.
    fn default() -> Self {
        Self { bodies: 30, receipts: 400, events: 400 }
    }
}

/// What a run deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Bodies of commands and of results.
    pub commands_bodies: u64,
    /// Private outputs.
    pub outputs: u64,
    /// Commands with their receipts and marks.
    pub rows: u64,
    /// Events.
    pub events: u64,
}

impl Keeper {
    /// Rows that a statement deletes at the most: it holds locks and makes the server write.
    const BATCH: i64 = 1000;

    /// Bodies that a statement deletes at the most, each up to 1 MiB.
    const BODIES: i64 = 200;

    /// Commands whose private outputs a statement deletes at the most, each up to 16 MiB and some
    /// for a command.
    const OUTPUTS: i64 = 8;

    /// Commands that a statement deletes at the most, each with an ending and perhaps a mark.
    const COMMANDS: i64 = Self::BATCH / 3;

    const MOST_DAYS: u32 = 36_500;

    /// Works through `pool`.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { store: Store::new(pool) }
    }

    /// Deletes everything that `retention` allows, in small statements, stream by stream. What it
    /// has deleted when it fails stays deleted; running it again goes on, and once more does
    /// nothing.
    ///
    /// Of a stream only its beginning goes, up to the first command that has to stay; one without
    /// an ending always does. A Runtime that asks for what is gone is told where to go on.
    ///
    /// # Errors
    ///
    /// The database failed.
    pub async fn prune(&self, retention: Retention) -> Result<Pruned, ReadError> {
        let mut pruned = Pruned::default();
        for stream in self.store.streams().await? {
            self.prune_stream(&stream, retention, &mut pruned).await?;
        }
        for site in self.store.event_sites().await? {
            pruned.events += self.prune_events(&site, days(retention.events)).await?;
        }
        Ok(pruned)
    }

    async fn prune_stream(
        &self,
        stream: &Stream,
        retention: Retention,
        pruned: &mut Pruned,
    ) -> Result<(), ReadError> {
        let store = &self.store;
        while store.trim(stream, days(retention.bodies), Self::BATCH).await? {}
        let bodies = |after| store.prune_command_bodies(stream, after, Self::BODIES);
        pruned.commands_bodies += in_batches(bodies).await?;
        let bodies = |after| store.prune_result_bodies(stream, after, Self::BODIES);
        pruned.commands_bodies += in_batches(bodies).await?;
        let outputs = |after| store.prune_outputs(stream, after, Self::OUTPUTS);
        pruned.outputs += in_batches(outputs).await?;
        let receipts = days(retention.receipts);
        let rows = |after| store.prune_rows(stream, after, Self::COMMANDS, receipts);
        pruned.rows += in_batches(rows).await?;
        Ok(())
    }

    async fn prune_events(&self, site: &SiteId, days: i32) -> Result<u64, ReadError> {
        in_batches(|after| self.store.prune_events(site, after, Self::BATCH, days)).await
    }
}

/// Deletes batch after batch, each after the one before, and returns how many rows went. Going on
/// after the last one spares the next statement to step over what is gone.
async fn in_batches<F: Future<Output = Result<PrunedBatch, ReadError>>>(
    delete_after: impl Fn(i64) -> F,
) -> Result<u64, ReadError> {
    let (mut rows, mut after) = (0, 0);
    loop {
        let batch = delete_after(after).await?;
        rows += batch.rows;
        match batch.last {
            Some(last) => after = last,
            None => return Ok(rows),
        }
    }
}

fn days(days: u32) -> i32 {
    i32::try_from(days.min(Keeper::MOST_DAYS)).unwrap_or(i32::MAX)
}
