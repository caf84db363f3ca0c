//! The only file that runs statements; it turns their rows into values. (`wakeups.rs` listens for
//! hints, on a connection of its own.)

use chrono::{DateTime, Utc};
use database::{DatabaseError, Pool};

use crate::{
    CommandId, Digest, Environment, Generation, JsonText, NewCommand, Outcome, ReadError, Receipt,
    Seq, SiteId, StoredCommand, Stream,
    producer::{CommandSummary, StoredResult},
    statements::{
        Announce, CommandRow, Enqueue, EnqueueMany, ListCommands, OpenStream, ReadHeads, ReadPage,
        ShowCommand, StoreResult, StreamRow, SummaryRow,
    },
    wakeups::channel,
};

/// Statements of this context over one pool.
#[derive(Clone)]
pub(crate) struct Store {
    pool: Pool,
}

/// What an enqueue found or made.
pub(crate) struct EnqueuedRow {
    pub(crate) command_id: CommandId,
    pub(crate) seq: Seq,
    pub(crate) digest: Digest,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) new: bool,
}

/// The state of a stream in one snapshot, and the commands after a cursor.
pub(crate) struct Snapshot {
    pub(crate) last_seq: Seq,
    pub(crate) done_seq: Seq,
    pub(crate) generation: Generation,
    /// The chain digest at the cursor; absent above the end.
    pub(crate) digest: Option<Digest>,
    /// The age in seconds of the command that is due.
    pub(crate) due_age: Option<i64>,
    pub(crate) time: DateTime<Utc>,
    pub(crate) commands: Vec<StoredCommand>,
}

/// What one run of the result's statement did and saw.
pub(crate) struct ResultAttempt {
    pub(crate) seq: Seq,
    pub(crate) done_seq: Seq,
    pub(crate) generation: Generation,
    /// When this statement stored the result; absent where it did not.
    pub(crate) stored_at: Option<DateTime<Utc>>,
    /// The result that was there before.
    pub(crate) earlier: Option<Receipt>,
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
    ) -> Result<Option<EnqueuedRow>, DatabaseError> {
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
        Ok(rows.into_iter().next().and_then(|(seq, digest, created_at, new)| {
            Some(EnqueuedRow {
                command_id: id.clone(),
                seq: Seq::from_database(seq),
                digest: Digest::from_slice(&digest)?,
                created_at,
                new,
            })
        }))
    }

    /// Enqueues commands with distinct ids, or finds them; nothing where the stream is absent.
    pub(crate) async fn enqueue_many(
        &self,
        stream: &Stream,
        commands: &[(CommandId, NewCommand)],
    ) -> Result<Vec<EnqueuedRow>, DatabaseError> {
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
        Ok(rows
            .into_iter()
            .filter_map(|(id, seq, digest, created_at, new)| {
                Some(EnqueuedRow {
                    command_id: CommandId::parse(&id).ok()?,
                    seq: Seq::from_database(seq),
                    digest: Digest::from_slice(&digest)?,
                    created_at,
                    new,
                })
            })
            .collect())
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
        let mut snapshot = snapshot(first, after)?;
        for command in rows.into_iter().filter_map(|(_, command)| command) {
            snapshot.commands.push(stored_command(command)?);
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
    ) -> Result<Option<ResultAttempt>, ReadError> {
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
        let Some((seq, done_seq, current, stored_at, digest, outcome, received_at)) =
            rows.into_iter().next()
        else {
            return Ok(None);
        };
        let earlier = match (digest, outcome, received_at) {
            (Some(digest), Some(outcome), Some(received_at)) => Some(Receipt {
                command_id: id.clone(),
                seq: Seq::from_database(seq),
                digest: digest_of(&digest)?,
                outcome: outcome_of(&outcome)?,
                received_at,
            }),
            _ => None,
        };
        Ok(Some(ResultAttempt {
            seq: Seq::from_database(seq),
            done_seq: Seq::from_database(done_seq),
            generation: Generation::from_database(current),
            stored_at,
            earlier,
        }))
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
        self.pool.load(statement).await?.into_iter().map(summary).collect()
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
        let mut summary = summary(row)?;
        summary.body = body.map(JsonText::from_database);
        if let Some(result) = &mut summary.result {
            result.body = result_body.map(JsonText::from_database);
        }
        Ok(Some(summary))
    }
}

fn snapshot(row: &StreamRow, after: Seq) -> Result<Snapshot, ReadError> {
    let (last_seq, done_seq, generation, digest, due_age, time) = row;
    let digest = match digest {
        None if after == Seq::ZERO => Some(Digest::ZERO),
        None => None,
        Some(bytes) => Some(digest_of(bytes)?),
    };
    Ok(Snapshot {
        last_seq: Seq::from_database(*last_seq),
        done_seq: Seq::from_database(*done_seq),
        generation: Generation::from_database(*generation),
        digest,
        due_age: *due_age,
        time: *time,
        commands: Vec::new(),
    })
}

fn stored_command(row: CommandRow) -> Result<StoredCommand, ReadError> {
    let (seq, id, kind, run_id, digest, chain_digest, created_at, body) = row;
    Ok(StoredCommand {
        id: CommandId::parse(&id).map_err(|_| ReadError::Corrupt("a command's id"))?,
        seq: Seq::from_database(seq),
        kind,
        run_id,
        digest: digest_of(&digest)?,
        chain_digest: digest_of(&chain_digest)?,
        created_at,
        body: JsonText::from_database(body),
    })
}

fn summary(row: SummaryRow) -> Result<CommandSummary, ReadError> {
    let (seq, id, key, kind, run_id, digest, created_at, outcome, result_digest, received_at) = row;
    let result = match (outcome, result_digest, received_at) {
        (Some(outcome), Some(digest), Some(received_at)) => Some(StoredResult {
            outcome: outcome_of(&outcome)?,
            digest: digest_of(&digest)?,
            received_at,
            body: None,
        }),
        _ => None,
    };
    Ok(CommandSummary {
        id: CommandId::parse(&id).map_err(|_| ReadError::Corrupt("a command's id"))?,
        seq: Seq::from_database(seq),
        key,
        kind,
        run_id,
        digest: digest_of(&digest)?,
        created_at,
        body: None,
        result,
    })
}

fn digest_of(bytes: &[u8]) -> Result<Digest, ReadError> {
    Digest::from_slice(bytes).ok_or(ReadError::Corrupt("a digest's length"))
}

fn outcome_of(text: &str) -> Result<Outcome, ReadError> {
    Outcome::parse(text).map_err(|_| ReadError::Corrupt("an outcome"))
}
