//! The only file that runs statements; `rows` turns their rows into values. (`wakeups.rs` listens for
//! hints, on a connection of its own.)

mod rows;

use database::{DatabaseError, Pool};

use crate::{
    CommandId, Environment, Generation, JsonText, NewCommand, Outcome, ReadError, Seq, SiteId,
    Stream,
    producer::CommandSummary,
    statements::{
        Announce, Enqueue, EnqueueMany, ListCommands, OpenStream, ReadHeads, ReadPage, ShowCommand,
        StoreResult,
    },
    wakeups::channel,
};

pub(crate) use rows::{EnqueuedRow, ResultTry, Snapshot};

/// Statements of this context over one pool.
#[derive(Clone)]
pub(crate) struct Store {
    pool: Pool,
}

impl Store {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Enqueues one command, or finds it; `None` where the stream does not exist.
    pub(crate) async fn enqueue(
        &self,
        stream: &Stream,
        id: &CommandId,
        command: &NewCommand,
    ) -> Result<Option<EnqueuedRow>, ReadError> {
        let rows = self
            .pool
            .load(Enqueue {
                site: stream.site.as_str().to_owned(),
                environment: stream.environment.as_str(),
                command_id: id.as_str().to_owned(),
                key: command.key.as_str().to_owned(),
                kind: command.kind.as_str().to_owned(),
                run_id: command.run_id.as_ref().map(|run| run.as_str().to_owned()),
                digest: *command.digest(id).as_bytes(),
                body: command.body.as_str().to_owned(),
            })
            .await?;
        let row = rows.into_iter().next();
        row.map(|(seq, digest, created_at, new)| {
            rows::enqueued(id.clone(), seq, &digest, created_at, new)
        })
        .transpose()
    }

    /// Enqueues commands with distinct ids, or finds them; nothing where the stream is absent.
    pub(crate) async fn enqueue_many(
        &self,
        stream: &Stream,
        commands: &[(CommandId, NewCommand)],
    ) -> Result<Vec<EnqueuedRow>, ReadError> {
        let texts = |field: fn(&NewCommand) -> &str| -> Vec<String> {
            commands.iter().map(|(_, command)| field(command).to_owned()).collect()
        };
        let statement = EnqueueMany {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            command_ids: commands.iter().map(|(id, _)| id.as_str().to_owned()).collect(),
            keys: texts(|command| command.key.as_str()),
            kinds: texts(|command| command.kind.as_str()),
            run_ids: commands
                .iter()
                .map(|(_, command)| command.run_id.as_ref().map(|run| run.as_str().to_owned()))
                .collect(),
            digests: commands
                .iter()
                .map(|(id, command)| command.digest(id).as_bytes().to_vec())
                .collect(),
            bodies: texts(|command| command.body.as_str()),
        };
        let rows = self.pool.load(statement).await?;
        rows.into_iter()
            .map(|(id, seq, digest, created_at, new)| {
                rows::enqueued(rows::command_id(&id)?, seq, &digest, created_at, new)
            })
            .collect()
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

    /// Commands of a stream with their state.
    pub(crate) async fn list(
        &self,
        stream: &Stream,
        after: Seq,
        limit: u16,
    ) -> Result<Vec<CommandSummary>, ReadError> {
        let statement = ListCommands {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            after: after.get(),
            limit: i64::from(limit),
        };
        self.pool.load(statement).await?.into_iter().map(rows::summary).collect()
    }

    /// One command with its state and bodies.
    pub(crate) async fn show(
        &self,
        stream: &Stream,
        id: &CommandId,
    ) -> Result<Option<CommandSummary>, ReadError> {
        let statement = ShowCommand {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            command_id: id.as_str().to_owned(),
        };
        let Some((row, (body, result_body))) = self.pool.load(statement).await?.into_iter().next()
        else {
            return Ok(None);
        };
        let mut summary = rows::summary(row)?;
        summary.body = body.map(JsonText::from_database);
        if let Some(result) = &mut summary.result {
            result.body = result_body.map(JsonText::from_database);
        }
        Ok(Some(summary))
    }
}
