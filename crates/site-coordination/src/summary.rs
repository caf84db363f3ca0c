//! What a producer can see: commands with what became of them, and the state of streams.

use chrono::{DateTime, Utc};

use crate::{
    CommandId, Digest, Due, Generation, JsonText, Outcome, Producer, ReadError, Seq, SessionId,
    SiteId, Stream, Voided,
};

/// A command with what became of it.
#[derive(Clone, Debug)]
pub struct CommandSummary {
    /// Its id.
    pub id: CommandId,
    /// Its place in the stream.
    pub seq: Seq,
    /// The producer's key.
    pub key: String,
    /// What it asks for.
    pub kind: String,
    /// The Run that it belongs to.
    pub run_id: Option<String>,
    /// After it the command is voided once its result is due.
    pub not_after: Option<DateTime<Utc>>,
    /// The digest over its fields.
    pub digest: Digest,
    /// When it was enqueued.
    pub created_at: DateTime<Utc>,
    /// Its body, where it was asked for and retention has left it.
    pub body: Option<JsonText>,
    /// When it was cancelled, if it was.
    pub cancelled_at: Option<DateTime<Utc>>,
    /// That it was voided, if it was: then it has no result.
    pub voided: Option<Voided>,
    /// Its result, when there is one.
    pub result: Option<StoredResult>,
}

/// A stored result.
#[derive(Clone, Debug)]
pub struct StoredResult {
    /// How the command ended.
    pub outcome: Outcome,
    /// The digest of the result.
    pub digest: Digest,
    /// The digest of the private output that counts, where the result names one.
    pub output_digest: Option<Digest>,
    /// When it was stored.
    pub received_at: DateTime<Utc>,
    /// The result, where it was asked for and retention has left it.
    pub body: Option<JsonText>,
}

/// The state of a stream at one moment.
#[derive(Clone, Debug)]
pub struct StreamStatus {
    /// Which stream.
    pub stream: Stream,
    /// Its newest command.
    pub last_seq: Seq,
    /// The last command that has an ending; those after it are its backlog.
    pub done_seq: Seq,
    /// The command whose result is due, where there is one.
    pub due: Option<Due>,
    /// The generation that its Runtime writes with.
    pub generation: Generation,
    /// The session of that generation; absent in the first.
    pub session: Option<CurrentSession>,
    /// The number of its newest mark of a cancelled command; 0 before the first.
    pub cancel_rev: u64,
    /// Up to here retention has taken the bodies.
    pub trimmed_seq: Seq,
}

/// The session that a Runtime writes with.
#[derive(Clone, Debug)]
pub struct CurrentSession {
    /// Its id.
    pub id: SessionId,
    /// When it was opened, by the database's clock.
    pub opened_at: DateTime<Utc>,
}

impl Producer {
    /// Commands of a stream after a sequence, in order, at most `limit`, without their bodies.
    ///
    /// # Errors
    ///
    /// The database failed.
    pub async fn list(
        &self,
        stream: &Stream,
        after: Seq,
        limit: u16,
    ) -> Result<Vec<CommandSummary>, ReadError> {
        self.store.list(stream, after, limit).await
    }

    /// One command with its bodies; `None` where the stream has no such command.
    ///
    /// # Errors
    ///
    /// The database failed.
    pub async fn show(
        &self,
        stream: &Stream,
        id: &CommandId,
    ) -> Result<Option<CommandSummary>, ReadError> {
        self.store.show(stream, id).await
    }

    /// The state of each stream of a Site, or of all Sites, by Site and environment. One statement,
    /// whose cost grows with the number of streams and not with what is in them.
    ///
    /// # Errors
    ///
    /// The database failed.
    pub async fn status(&self, site: Option<&SiteId>) -> Result<Vec<StreamStatus>, ReadError> {
        self.store.status(site).await
    }
}
