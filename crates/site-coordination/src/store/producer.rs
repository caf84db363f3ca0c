//! What a producer asks and changes.

use chrono::{DateTime, Utc};

use super::{
    Store,
    rows::{command_id, digest_of, outcome_of},
};
use crate::{
    CommandId, Digest, JsonText, NewCommand, ReadError, Seq, Stream,
    producer::{CommandSummary, StoredResult},
    statements::producer::{
        Enqueue, EnqueueMany, ListCommands, ReadBacklog, ShowCommand, SummaryRow,
    },
};

/// What an enqueue found or made.
pub(crate) struct EnqueuedRow {
    pub(crate) command_id: CommandId,
    pub(crate) seq: Seq,
    pub(crate) digest: Digest,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) new: bool,
}

impl Store {
    /// Enqueues one command, or finds it; `None` where the stream does not exist or is full.
    pub(crate) async fn enqueue(
        &self,
        stream: &Stream,
        id: &CommandId,
        command: &NewCommand,
        limit: u32,
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
                not_after: command.kept_not_after(),
                limit: i64::from(limit),
            })
            .await?;
        let row = rows.into_iter().next();
        row.map(|(seq, digest, created_at, new)| {
            enqueued(id.clone(), seq, &digest, created_at, new)
        })
        .transpose()
    }

    /// Enqueues commands with distinct ids, or finds them; where the stream is absent or has not
    /// the room for all that are new, only those that were there before.
    pub(crate) async fn enqueue_many(
        &self,
        stream: &Stream,
        commands: &[(CommandId, NewCommand)],
        limit: u32,
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
            not_afters: commands.iter().map(|(_, command)| command.kept_not_after()).collect(),
            limit: i64::from(limit),
        };
        let rows = self.pool.load(statement).await?;
        rows.into_iter()
            .map(|(id, seq, digest, created_at, new)| {
                enqueued(command_id(&id)?, seq, &digest, created_at, new)
            })
            .collect()
    }

    /// How many commands of a stream have no ending; `None` where the stream does not exist.
    pub(crate) async fn backlog(&self, stream: &Stream) -> Result<Option<i64>, ReadError> {
        let statement = ReadBacklog {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
        };
        Ok(self.pool.load(statement).await?.into_iter().next().map(|(backlog,)| backlog))
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

fn enqueued(
    command_id: CommandId,
    seq: i64,
    digest: &[u8],
    created_at: DateTime<Utc>,
    new: bool,
) -> Result<EnqueuedRow, ReadError> {
    let digest = digest_of(digest)?;
    Ok(EnqueuedRow { command_id, seq: Seq::from_database(seq), digest, created_at, new })
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
        id: command_id(&id)?,
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
