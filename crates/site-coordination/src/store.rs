//! The only files that run statements: this one and those below it; `rows` turns their rows into values. (`wakeups.rs` listens for
//! hints, on a connection of its own.)

mod producer;
mod rows;

use database::{DatabaseError, Pool};

use crate::{
    CommandId, Environment, Generation, JsonText, Outcome, ReadError, Seq, SiteId, Stream,
    statements::{Announce, OpenStream, ReadHeads, ReadPage, StoreResult},
    wakeups::channel,
};

pub(crate) use producer::EnqueuedRow;
pub(crate) use rows::{ResultTry, Snapshot};

/// Statements of this context over one pool.
#[derive(Clone)]
pub(crate) struct Store {
    pool: Pool,
}

impl Store {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Makes the stream where it is absent.
    pub(crate) async fn open_stream(&self, stream: &Stream) -> Result<(), DatabaseError> {
        let statement = OpenStream {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
        };
        self.pool.load(statement).await.map(drop)
    }

    /// Reads the commands after `after`; a stream that does not exist is an empty one.
    pub(crate) async fn page(
        &self,
        stream: &Stream,
        after: Seq,
        limit: u16,
        bytes: u32,
    ) -> Result<Snapshot, ReadError> {
        let rows = self
            .pool
            .load(ReadPage {
                site: stream.site.as_str().to_owned(),
                environment: stream.environment.as_str(),
                after: after.get(),
                limit: i64::from(limit),
                bytes: i64::from(bytes),
            })
            .await?;
        let (first, _) = rows.first().ok_or(ReadError::Corrupt("a page without a row"))?;
        let mut snapshot = rows::snapshot(first, after)?;
        for command in rows.into_iter().filter_map(|(_, command)| command) {
            snapshot.commands.push(rows::stored_command(command)?);
        }
        Ok(snapshot)
    }

    /// Runs the result's statement once; `None` where the stream has no such command.
    pub(crate) async fn store_result(
        &self,
        stream: &Stream,
        id: &CommandId,
        generation: Generation,
        outcome: Outcome,
        body: &JsonText,
    ) -> Result<Option<ResultTry>, ReadError> {
        let rows = self
            .pool
            .load(StoreResult {
                site: stream.site.as_str().to_owned(),
                environment: stream.environment.as_str(),
                command_id: id.as_str().to_owned(),
                generation: generation.get(),
                digest: *body.digest().as_bytes(),
                outcome: outcome.as_str(),
                body: body.as_str().to_owned(),
            })
            .await?;
        rows.into_iter().next().map(|row| rows::result_try(id, row)).transpose()
    }

    /// The newest sequence of each stream of a Site.
    pub(crate) async fn heads(
        &self,
        site: &SiteId,
    ) -> Result<Vec<(Environment, i64)>, DatabaseError> {
        let rows = self.pool.load(ReadHeads { site: site.as_str().to_owned() }).await?;
        Ok(rows
            .into_iter()
            .filter_map(|(environment, seq)| Some((Environment::parse(&environment).ok()?, seq)))
            .collect())
    }

    /// Sends a hint to the listeners of the stream's Site.
    pub(crate) async fn announce(&self, stream: &Stream) -> Result<(), DatabaseError> {
        let statement =
            Announce { channel: channel(&stream.site), environment: stream.environment.as_str() };
        self.pool.load(statement).await.map(drop)
    }
}
