//! What the rows of these statements mean.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::{
    CancelMark, CommandId, Digest, Generation, JsonText, ReadError, Receipt, Seq, StoredCommand,
    Writer,
    statements::runtime::{
        CommandRow, OpenSessionRow, OutputRow, PlaceRow, StreamRow, TargetOrPageRow, TargetRow,
    },
    store::rows::{command_id, digest_of, outcome_of},
};

/// The state of a stream in one snapshot, and the commands after a cursor.
pub(crate) struct Snapshot {
    pub(crate) last_seq: Seq,
    pub(crate) done_seq: Seq,
    pub(crate) writer: Writer,
    pub(crate) cancel_rev: u64,
    /// The place up to which commands were removed, with its chain digest.
    pub(crate) trimmed: (Seq, Option<Digest>),
    pub(crate) after: Seq,
    /// The chain digest at the cursor; absent above the end.
    pub(crate) digest: Option<Digest>,
    /// The age in seconds of the command that is due.
    pub(crate) due_age: Option<i64>,
    pub(crate) time: DateTime<Utc>,
    /// The open cancels after the one that the caller knows, each with its count.
    pub(crate) cancelled: Vec<(u64, CancelMark)>,
    pub(crate) commands: Vec<StoredCommand>,
}

/// What one run of the statement that opens a session did and saw.
pub(crate) struct OpenTry {
    /// The writer that it saw.
    pub(crate) writer: Writer,
    /// The generation that it opened; absent where it did not.
    pub(crate) opened: Option<Generation>,
    /// Whether the session was there before.
    pub(crate) known: bool,
}

/// How far a stream is.
pub(crate) struct Place {
    pub(crate) done_seq: Seq,
    pub(crate) done_digest: Digest,
    pub(crate) last_seq: Seq,
    pub(crate) time: DateTime<Utc>,
}

/// What one run of the results' statement did and saw.
pub(crate) struct ResultsTry {
    /// The commands that the stream has.
    pub(crate) targets: HashMap<CommandId, Target>,
    /// The page after the last leading one that has an ending.
    pub(crate) next: Option<Snapshot>,
}

/// A command for which a result came.
pub(crate) struct Target {
    pub(crate) seq: Seq,
    /// The stream's, before this statement.
    pub(crate) done_seq: Seq,
    /// The writer that the stream has.
    pub(crate) writer: Writer,
    /// When this statement stored the result; absent where it did not.
    pub(crate) stored_at: Option<DateTime<Utc>>,
    /// The result that was there before.
    pub(crate) earlier: Option<Receipt>,
    /// When the command was voided.
    pub(crate) voided_at: Option<DateTime<Utc>>,
    /// Whether the output that the result names is there, or it names none.
    pub(crate) has_output: bool,
}

/// What one run of the output's statement did and saw.
pub(crate) struct OutputTry {
    pub(crate) seq: Seq,
    pub(crate) has_run: bool,
    pub(crate) done_seq: Seq,
    /// The writer that the stream has.
    pub(crate) writer: Writer,
    /// When this statement stored the output; absent where it did not.
    pub(crate) stored_at: Option<DateTime<Utc>>,
    /// When the same output was stored before.
    pub(crate) earlier: Option<DateTime<Utc>>,
    /// How many outputs the command had before.
    pub(crate) count: u64,
    /// The digest of the command's result.
    pub(crate) result: Option<Digest>,
    /// When the command was voided.
    pub(crate) voided_at: Option<DateTime<Utc>>,
}

pub(super) fn snapshot(rows: Vec<(StreamRow, Option<CommandRow>)>) -> Result<Snapshot, ReadError> {
    let mut rows = rows.into_iter();
    let (first, command) = rows.next().ok_or(ReadError::Corrupt("a page without a row"))?;
    let mut snapshot = stream(first)?;
    for command in command.into_iter().chain(rows.filter_map(|(_, command)| command)) {
        snapshot.commands.push(stored_command(command)?);
    }
    Ok(snapshot)
}

pub(super) fn results_try(rows: Vec<TargetOrPageRow>) -> Result<ResultsTry, ReadError> {
    let (mut targets, mut page) = (Vec::new(), Vec::new());
    for (answered, stream, command) in rows {
        targets.extend(answered);
        page.extend(stream.map(|stream| (stream, command)));
    }
    let next = if page.is_empty() { None } else { Some(snapshot(page)?) };
    Ok(ResultsTry { next, ..results_alone(targets)? })
}

pub(super) fn results_alone(rows: Vec<TargetRow>) -> Result<ResultsTry, ReadError> {
    let targets = rows.into_iter().map(target).collect::<Result<_, _>>()?;
    Ok(ResultsTry { targets, next: None })
}

fn stream(row: StreamRow) -> Result<Snapshot, ReadError> {
    let (state, place, cancelled) = row;
    let (last_seq, done_seq, generation, session, cancel_rev) = state;
    let (trimmed_seq, trimmed_digest, after, digest, due_age, time) = place;
    Ok(Snapshot {
        last_seq: Seq::from_database(last_seq),
        done_seq: Seq::from_database(done_seq),
        writer: Writer::from_database(generation, session),
        cancel_rev: cancel_rev.unsigned_abs(),
        trimmed: (Seq::from_database(trimmed_seq), digest_at(trimmed_seq, trimmed_digest)?),
        after: Seq::from_database(after),
        digest: digest_at(after, digest)?,
        due_age,
        time,
        cancelled: cancelled.map_or_else(|| Ok(Vec::new()), marks)?,
        commands: Vec::new(),
    })
}

/// The chain digest at a place; before the first command it is none of the database's.
fn digest_at(seq: i64, digest: Option<Vec<u8>>) -> Result<Option<Digest>, ReadError> {
    match digest {
        None if seq == 0 => Ok(Some(Digest::ZERO)),
        None => Ok(None),
        Some(bytes) => digest_of(&bytes).map(Some),
    }
}

fn marks(
    (revs, ids, seqs): (Vec<i64>, Vec<String>, Vec<i64>),
) -> Result<Vec<(u64, CancelMark)>, ReadError> {
    revs.into_iter()
        .zip(ids)
        .zip(seqs)
        .map(|((rev, id), seq)| {
            let mark = CancelMark { id: command_id(&id)?, seq: Seq::from_database(seq) };
            Ok((rev.unsigned_abs(), mark))
        })
        .collect()
}

fn stored_command(row: CommandRow) -> Result<StoredCommand, ReadError> {
    let (seq, id, kind, run_id, not_after, digest, chain_digest, created_at, voided, body) = row;
    Ok(StoredCommand {
        id: command_id(&id)?,
        seq: Seq::from_database(seq),
        kind,
        run_id,
        not_after,
        digest: digest_of(&digest)?,
        chain_digest: digest_of(&chain_digest)?,
        created_at,
        voided,
        body: JsonText::from_database(body),
    })
}

pub(super) fn open_try((generation, session, opened, known): OpenSessionRow) -> OpenTry {
    OpenTry {
        writer: Writer::from_database(generation, session),
        opened: opened.map(Generation::from_database),
        known,
    }
}

pub(super) fn place((done_seq, digest, last_seq, time): PlaceRow) -> Result<Place, ReadError> {
    let done_digest = digest_at(done_seq, digest)?
        .ok_or(ReadError::Corrupt("a done sequence without its command"))?;
    Ok(Place {
        done_seq: Seq::from_database(done_seq),
        done_digest,
        last_seq: Seq::from_database(last_seq),
        time,
    })
}

fn target(row: TargetRow) -> Result<(CommandId, Target), ReadError> {
    let ((id, seq), (done_seq, generation, session), stored_at, earlier, voided_at, has_output) =
        row;
    let (id, seq) = (command_id(&id)?, Seq::from_database(seq));
    let earlier = earlier
        .map(|(digest, outcome, received_at)| {
            Ok::<_, ReadError>(Receipt {
                command_id: id.clone(),
                seq,
                digest: digest_of(&digest)?,
                outcome: outcome_of(&outcome)?,
                received_at,
            })
        })
        .transpose()?;
    let target = Target {
        seq,
        done_seq: Seq::from_database(done_seq),
        writer: Writer::from_database(generation, session),
        stored_at,
        earlier,
        voided_at,
        has_output,
    };
    Ok((id, target))
}

pub(super) fn output_try(row: OutputRow) -> Result<OutputTry, ReadError> {
    let ((seq, has_run), (done_seq, generation, session), outputs, (result, voided_at)) = row;
    let (stored_at, earlier, count) = outputs;
    Ok(OutputTry {
        seq: Seq::from_database(seq),
        has_run,
        done_seq: Seq::from_database(done_seq),
        writer: Writer::from_database(generation, session),
        stored_at,
        earlier,
        count: count.unsigned_abs(),
        result: result.map(|digest| digest_of(&digest)).transpose()?,
        voided_at,
    })
}

/// A count as the database holds it; one that it can't hold is above all that it has.
pub(super) fn bigint(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
