//! What a producer asks and changes.

use chrono::{DateTime, Utc};

use super::{
    Store,
    rows::{command_id, digest_of, outcome_of},
};
use crate::{
    Cancelled, CommandId, CommandSummary, CurrentSession, Digest, Due, Ending, Environment,
    Generation, JsonText, NewCommand, ReadError, Seq, SessionId, SiteId, StoredResult, Stream,
    StreamStatus, VoidNote, VoidReason, Voided,
    statements::producer::{
        CancelCommand, Enqueue, EnqueueMany, ListCommands, ReadBacklog, ReadEnding, ReadStatus,
        ResultRow, ShowCommand, StatusRow, SummaryRow, VoidCommand, VoidRow,
    },
};

/// What one run of a void's statement did and saw.
pub(crate) struct VoidTry {
    pub(crate) seq: Seq,
    pub(crate) done_seq: Seq,
    /// Whether there was a result before.
    pub(crate) has_result: bool,
    /// That of this statement, or the one that was there before.
    pub(crate) voided: Option<Voided>,
}

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

    /// Marks a command as cancelled; `None` where the stream has no such command, and within it
    /// where the command has an ending and no mark.
    pub(crate) async fn cancel(
        &self,
        stream: &Stream,
        id: &CommandId,
    ) -> Result<Option<Option<Cancelled>>, ReadError> {
        let statement = CancelCommand {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            command_id: id.as_str().to_owned(),
        };
        let row = self.pool.load(statement).await?.into_iter().next();
        Ok(row.map(|(cancel_rev, at, new)| {
            Some(Cancelled { cancel_rev: cancel_rev?.unsigned_abs(), at: at?, new })
        }))
    }

    /// Runs the void's statement once; `None` where the stream has no such command.
    pub(crate) async fn void(
        &self,
        stream: &Stream,
        id: &CommandId,
        note: &VoidNote,
    ) -> Result<Option<VoidTry>, ReadError> {
        let statement = VoidCommand {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            command_id: id.as_str().to_owned(),
            note: note.as_str().to_owned(),
        };
        let row = self.pool.load(statement).await?.into_iter().next();
        row.map(|((seq, done_seq, has_result), void)| {
            Ok(VoidTry {
                seq: Seq::from_database(seq),
                done_seq: Seq::from_database(done_seq),
                has_result,
                voided: void.map(voided).transpose()?,
            })
        })
        .transpose()
    }

    /// How a command ended, if it has; `None` where the stream has no such command.
    pub(crate) async fn ending(
        &self,
        stream: &Stream,
        id: &CommandId,
    ) -> Result<Option<Option<Ending>>, ReadError> {
        let statement = ReadEnding {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            command_id: id.as_str().to_owned(),
        };
        let Some((result, body, void)) = self.pool.load(statement).await?.into_iter().next() else {
            return Ok(None);
        };
        if let Some(row) = result {
            let result =
                StoredResult { body: body.map(JsonText::from_database), ..stored_result(row)? };
            return Ok(Some(Some(Ending::Result(result))));
        }
        Ok(Some(void.map(voided).transpose()?.map(Ending::Voided)))
    }

    /// The state of each stream of a Site, or of all.
    pub(crate) async fn status(
        &self,
        site: Option<&SiteId>,
    ) -> Result<Vec<StreamStatus>, ReadError> {
        let statement = ReadStatus { site: site.map(|site| site.as_str().to_owned()) };
        self.pool.load(statement).await?.into_iter().map(stream_status).collect()
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
    let (fields, cancelled_at, void, result) = row;
    let (seq, id, key, kind, run_id, not_after, digest, created_at) = fields;
    Ok(CommandSummary {
        id: command_id(&id)?,
        seq: Seq::from_database(seq),
        key,
        kind,
        run_id,
        not_after,
        digest: digest_of(&digest)?,
        created_at,
        body: None,
        cancelled_at,
        voided: void.map(voided).transpose()?,
        result: result.map(stored_result).transpose()?,
    })
}

fn voided((reason, note, at): VoidRow) -> Result<Voided, ReadError> {
    let reason = VoidReason::parse(&reason).map_err(|_| ReadError::Corrupt("a reason to void"))?;
    Ok(Voided { reason, note, at })
}

fn stored_result(row: ResultRow) -> Result<StoredResult, ReadError> {
    let (outcome, digest, output, received_at) = row;
    Ok(StoredResult {
        outcome: outcome_of(&outcome)?,
        digest: digest_of(&digest)?,
        output_digest: output.as_deref().map(digest_of).transpose()?,
        received_at,
        body: None,
    })
}

fn stream_status(row: StatusRow) -> Result<StreamStatus, ReadError> {
    let ((site, environment), numbers, due_age, session) = row;
    let (last_seq, done_seq, generation, cancel_rev, trimmed_seq) = numbers;
    let site = SiteId::parse(&site).map_err(|_| ReadError::Corrupt("a Site"))?;
    let environment =
        Environment::parse(&environment).map_err(|_| ReadError::Corrupt("an environment"))?;
    let session = session
        .map(|(id, opened_at)| {
            let id = SessionId::parse(&id).map_err(|_| ReadError::Corrupt("a session"))?;
            Ok::<_, ReadError>(CurrentSession { id, opened_at })
        })
        .transpose()?;
    Ok(StreamStatus {
        stream: Stream { site, environment },
        last_seq: Seq::from_database(last_seq),
        done_seq: Seq::from_database(done_seq),
        due: due_age.map(|age| Due {
            seq: Seq::from_database(done_seq + 1),
            age_seconds: age.max(0).unsigned_abs(),
        }),
        generation: Generation::from_database(generation),
        session,
        cancel_rev: cancel_rev.unsigned_abs(),
        trimmed_seq: Seq::from_database(trimmed_seq),
    })
}
