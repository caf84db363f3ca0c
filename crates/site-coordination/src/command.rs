//! Commands and their results.

use std::fmt;

use chrono::{DateTime, Datelike, SecondsFormat, Utc};

use crate::{CommandId, CommandKind, Digest, Invalid, ProducerKey, RunId, Seq, digest::Fields};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The handler did it.
    Succeeded,
    /// The handler tried and failed.
    Failed,
    /// The handler will never be able to.
    Rejected,
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Succeeded, Self::Failed, Self::Rejected];

    /// Takes `succeeded`, `failed` or `rejected`.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
            .ok_or(Invalid("an outcome is succeeded, failed or rejected"))
    }

    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
        }
    }
}

/// A command that a producer wants in a stream.
#[derive(Clone, Debug)]
pub struct NewCommand {
    /// What makes it the same command when it is enqueued again.
    pub key: ProducerKey,
    /// What it asks for.
    pub kind: CommandKind,
    /// The Run that it belongs to.
    pub run_id: Option<RunId>,
    /// After it, by the database's clock, the command is voided once its result is due. In the
    /// years 1970 to 9999; kept to the microsecond, what is below that is cut off.
    pub not_after: Option<DateTime<Utc>>,
    /// Its body.
    pub body: JsonText,
}

impl NewCommand {
    /// `not_after` as the database keeps it: whole microseconds, and no leap second.
    pub(crate) fn kept_not_after(&self) -> Option<DateTime<Utc>> {
        self.not_after
            .map(|time| DateTime::from_timestamp_micros(time.timestamp_micros()).unwrap_or(time))
    }

    /// Whether `not_after` lies in the years that have one spelling on both sides.
    pub(crate) fn not_after_fits(&self) -> bool {
        self.kept_not_after().is_none_or(|time| (1970..=9999).contains(&time.year()))
    }

    /// The digest over the command's fields, which a Runtime computes again.
    #[must_use]
    pub fn digest(&self, id: &CommandId) -> Digest {
        let mut fields = Fields::new("site-control/command");
        fields.add("commandId", id.as_str());
        fields.add("kind", self.kind.as_str());
        if let Some(run_id) = &self.run_id {
            fields.add("runId", run_id.as_str());
        }
        if let Some(time) = self.kept_not_after() {
            fields.add("notAfter", &time.to_rfc3339_opts(SecondsFormat::Micros, true));
        }
        fields.add("body", self.body.as_str());
        fields.finish()
    }
}

/// A command as it stands in its stream.
#[derive(Clone, Debug)]
pub struct StoredCommand {
    /// Its id.
    pub id: CommandId,
    /// Its place.
    pub seq: Seq,
    /// What it asks for.
    pub kind: String,
    /// The Run that it belongs to.
    pub run_id: Option<String>,
    /// After this time of the database it is voided once its result is due.
    pub not_after: Option<DateTime<Utc>>,
    /// The digest over its fields.
    pub digest: Digest,
    /// The chain digest at its place.
    pub chain_digest: Digest,
    /// When it was enqueued, by the database's clock.
    pub created_at: DateTime<Utc>,
    /// Whether it will have no result: it is not to be run.
    pub voided: bool,
    /// Its body.
    pub body: JsonText,
}

/// What a stored result is acknowledged with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The command.
    pub command_id: CommandId,
    /// The command's place.
    pub seq: Seq,
    /// The digest of the stored result.
    pub digest: Digest,
    /// The stored outcome.
    pub outcome: Outcome,
    /// When it was stored, by the database's clock.
    pub received_at: DateTime<Utc>,
}

/// A JSON text of at most 1 MiB, kept to the byte without outer white space.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// The largest text, in bytes.
    pub const MAX_BYTES: usize = 1024 * 1024;

    /// The most arrays and objects within each other. Readers of JSON have such a bound, many this
    /// one: a text beyond it would be stuck in its stream.
    pub const MAX_DEPTH: usize = 128;

    /// Takes a text that is JSON.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        if text.len() > Self::MAX_BYTES {
            return Err(Invalid("a JSON text is at most 1 MiB"));
        }
        serde_json::from_str::<&serde_json::value::RawValue>(text)
            .map_err(|_| Invalid("it is not JSON"))?;
        if depth(text) > Self::MAX_DEPTH {
            return Err(Invalid("a JSON text is at most 128 arrays and objects deep"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Takes a text that was checked when it was stored.
    pub(crate) fn from_database(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Gives the text away.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }

    /// The identity of a result: SHA-256 of the bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

impl fmt::Debug for JsonText {
    /// A body can be private, so only its size is told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonText({} bytes)", self.0.len())
    }
}

/// How many arrays and objects of a JSON text are within each other.
fn depth(text: &str) -> usize {
    let (mut deepest, mut now, mut in_string, mut escaped) = (0, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' if !in_string => now -= 1,
            _ => {}
        }
    }
    deepest
}
