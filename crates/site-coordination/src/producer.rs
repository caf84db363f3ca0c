//! The side of a producer: what the control plane does with streams.

use std::{collections::HashMap, time::Duration};

use chrono::{DateTime, Utc};
use database::{DatabaseError, Pool};

use crate::{
    CommandId, EnqueueError, NewCommand, ReadError, Seq, Stream,
    announcer::Announcer,
    store::{EnqueuedRow, Store},
    wakeups::News,
};

/// Puts commands into streams and reads what became of them, with the role
/// `site_coordination_producer`. Cloning shares the connections.
#[derive(Clone)]
pub struct Producer {
    pub(crate) store: Store,
    pub(crate) announcer: Announcer,
    backlog: u32,
}

/// An enqueued command: the same for each repetition, but for `new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// Its id.
    pub id: CommandId,
    /// Its place in the stream.
    pub seq: Seq,
    /// When it was enqueued, by the database's clock.
    pub created_at: DateTime<Utc>,
    /// Whether this call enqueued it. False also where it did and the answer got lost between the
    /// database and this process, so that the statement was repeated.
    pub new: bool,
}

impl Producer {
    /// How many commands [`Producer::enqueue_many`] takes at once. For each command a
    /// statement of this size costs less than a smaller or a larger one.
    pub const MOST_AT_ONCE: usize = 256;

    /// How many commands without an ending a stream takes, where nobody says otherwise.
    pub const BACKLOG: u32 = 10_000;

    /// Between two hints. The first after a pause goes at once, so that only commands that come close
    /// behind another are told later; a hint for each would be as many transactions again, here and
    /// at each listener.
    const HINT_PAUSE: Duration = Duration::from_millis(2);

    /// How often a statement is run beyond once for each of its keys. A lost race means that
    /// another producer won with one of them, so no key can lose twice; the rest is for streams
    /// that come to be, and room to spare.
    const SPARE_TRIES: usize = 4;

    /// Works through `pool`. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        let store = Store::new(pool);
        Self {
            announcer: Announcer::start(store.clone(), Self::HINT_PAUSE),
            store,
            backlog: Self::BACKLOG,
        }
    }

    /// The same, for streams that take at most `limit` commands without an ending. The limit is
    /// exact for producers that agree on it, however many enqueue at once.
    #[must_use]
    pub fn with_backlog(self, limit: u32) -> Self {
        Self { backlog: limit, ..self }
    }

    /// Puts a command at the end of a stream, making the stream where it is absent.
    ///
    /// The same key with the same command again changes nothing and answers the first one's place.
    /// When this returns, the command is durable.
    ///
    /// # Errors
    ///
    /// [`EnqueueError::KeyConflict`] where the key stands for another command;
    /// [`EnqueueError::StreamFull`] where it is new and the stream has no room for it.
    pub async fn enqueue(
        &self,
        stream: &Stream,
        command: NewCommand,
    ) -> Result<Enqueued, EnqueueError> {
        check_not_after(&command)?;
        let id = CommandId::derive(stream, &command.key);
        for _ in 0..1 + Self::SPARE_TRIES {
            match self.store.enqueue(stream, &id, &command, self.backlog).await {
                Ok(Some(row)) => {
                    let enqueued = check(row, &id, &command)?;
                    self.announcer.announce(stream, News::Commands);
                    return Ok(enqueued);
                }
                Ok(None) => self.make_room(stream, 1).await?,
                Err(error) if lost_race(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(EnqueueError::Contended)
    }

    /// Puts commands at the end of a stream, in their order and without another between those that
    /// are new. All of them or none.
    ///
    /// A key may stand in the list more than once, for the same command.
    ///
    /// # Errors
    ///
    /// [`EnqueueError::TooMany`] above [`Producer::MOST_AT_ONCE`]; [`EnqueueError::KeyConflict`]
    /// where a key stands for another command, before or within the list;
    /// [`EnqueueError::StreamFull`] where the stream has not the room for all that are new. Nothing
    /// is stored then.
    pub async fn enqueue_many(
        &self,
        stream: &Stream,
        commands: Vec<NewCommand>,
    ) -> Result<Vec<Enqueued>, EnqueueError> {
        if commands.len() > Self::MOST_AT_ONCE {
            return Err(EnqueueError::TooMany { limit: Self::MOST_AT_ONCE });
        }
        commands.iter().try_for_each(check_not_after)?;
        let ids: Vec<CommandId> =
            commands.iter().map(|command| CommandId::derive(stream, &command.key)).collect();
        let distinct = distinct(&ids, commands)?;
        if distinct.is_empty() {
            return Ok(Vec::new());
        }
        for _ in 0..distinct.len() + Self::SPARE_TRIES {
            match self.store.enqueue_many(stream, &distinct, self.backlog).await {
                Ok(rows) => {
                    let answers = answers(&distinct, rows)?;
                    let missing = distinct.len() - answers.len();
                    if missing > 0 {
                        self.make_room(stream, missing).await?;
                        continue;
                    }
                    self.announcer.announce(stream, News::Commands);
                    return in_order(&ids, &answers);
                }
                Err(error) if lost_race(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(EnqueueError::Contended)
    }

    /// Finds out why a statement enqueued nothing of `new` commands, and makes the stream where that
    /// is the reason. Returns where it is worth another try: results came in the meantime.
    async fn make_room(&self, stream: &Stream, new: usize) -> Result<(), EnqueueError> {
        let Some(backlog) = self.store.backlog(stream).await? else {
            return Ok(self.store.open_stream(stream).await?);
        };
        let limit = self.backlog;
        let backlog = backlog.unsigned_abs();
        if backlog + new as u64 > u64::from(limit) {
            return Err(EnqueueError::StreamFull { backlog, limit });
        }
        Ok(())
    }

    /// Returns when the hints of everything so far are sent: for a process that ends right after.
    pub async fn flush_hints(&self) {
        self.announcer.flush().await;
    }
}

/// The commands with each id once.
fn distinct(
    ids: &[CommandId],
    commands: Vec<NewCommand>,
) -> Result<Vec<(CommandId, NewCommand)>, EnqueueError> {
    let mut digests = HashMap::new();
    let mut distinct = Vec::with_capacity(commands.len());
    for (id, command) in ids.iter().zip(commands) {
        let digest = command.digest(id);
        match digests.insert(id.clone(), digest) {
            None => distinct.push((id.clone(), command)),
            Some(earlier) if earlier == digest => {}
            Some(_) => return Err(EnqueueError::KeyConflict { key: command.key }),
        }
    }
    Ok(distinct)
}

/// The answers by id. A conflict kept the statement from storing the others, so it is looked for
/// before anything that is missing.
fn answers(
    commands: &[(CommandId, NewCommand)],
    rows: Vec<EnqueuedRow>,
) -> Result<HashMap<CommandId, Enqueued>, EnqueueError> {
    let mut rows: HashMap<CommandId, EnqueuedRow> =
        rows.into_iter().map(|row| (row.command_id.clone(), row)).collect();
    let mut answers = HashMap::new();
    for (id, command) in commands {
        if let Some(row) = rows.remove(id) {
            answers.insert(id.clone(), check(row, id, command)?);
        }
    }
    Ok(answers)
}

/// The answer for each id of the call, in the call's order.
fn in_order(
    ids: &[CommandId],
    answers: &HashMap<CommandId, Enqueued>,
) -> Result<Vec<Enqueued>, EnqueueError> {
    ids.iter()
        .map(|id| answers.get(id).cloned().ok_or(EnqueueError::Corrupt("a command without a row")))
        .collect()
}

fn check_not_after(command: &NewCommand) -> Result<(), EnqueueError> {
    if command.not_after_fits() {
        return Ok(());
    }
    Err(EnqueueError::NotAfterOutOfRange { key: command.key.clone() })
}

/// Compares the command that stands under an id with the one that was meant.
fn check(row: EnqueuedRow, id: &CommandId, command: &NewCommand) -> Result<Enqueued, EnqueueError> {
    if row.digest != command.digest(id) {
        return Err(EnqueueError::KeyConflict { key: command.key.clone() });
    }
    Ok(Enqueued { id: row.command_id, seq: row.seq, created_at: row.created_at, new: row.new })
}

/// Whether another producer enqueued one of the keys at the same moment. Any other constraint that
/// refuses says that the stored data are broken.
fn lost_race(error: &ReadError) -> bool {
    matches!(
        error,
        ReadError::Database(DatabaseError::UniqueViolation { constraint })
            if constraint == "command_once"
    )
}
