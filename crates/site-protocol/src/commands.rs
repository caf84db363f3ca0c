//! Bodies of the command routes.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::{Digest, Problem, object};

/// The header in which a Runtime names the generation that it writes with, a decimal number.
///
/// Every command route requires it but the one that opens a session. Generation 1 exists from the
/// start.
pub const RUNTIME_GENERATION_HEADER: &str = "runtime-generation";

/// The header in which a Runtime names its session: required from generation 2 on, and refused in
/// generation 1, which has none. After a database was restored, two sessions can have had one
/// generation; the id tells them apart.
pub const RUNTIME_SESSION_HEADER: &str = "runtime-session";

/// The body of `POST /v1/site/commands/sessions`: a Runtime that starts takes its stream over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRequest {
    /// 16 to 64 characters of `A-Z a-z 0-9 _ -`, made at random by the Runtime, for this start and
    /// no other.
    #[schema(pattern = "^[A-Za-z0-9_-]{16,64}$")]
    pub session_id: String,
    /// The generation that the Runtime believes to be the current one, from 1.
    #[schema(minimum = 1)]
    pub expected_generation: u64,
}

/// The answer to it, the same for each repetition but for the state of the stream, which is as it
/// is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The session.
    pub session_id: String,
    /// Its generation, from 2.
    pub generation: u64,
    /// The last command that has a result or is voided; 0 before the first.
    pub done_seq: u64,
    /// The chain digest there: where the Runtime goes on.
    pub done_digest: Digest,
    /// The newest command of the stream; 0 when it has none.
    pub last_seq: u64,
    /// The database's time.
    pub server_time: DateTime<Utc>,
}

/// The answer to `GET /v1/site/commands/?after=&afterDigest=&limit=&wait=`: the commands after a
/// sequence, in order. Reading claims nothing: the same question gets the same commands again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandPage {
    /// Consecutive commands, the first with `after + 1`; empty when there are none.
    #[serde(deserialize_with = "object::list")]
    pub commands: Vec<Command>,
    /// The sequence to ask after next: that of the last command here, else `after`.
    pub next_after: u64,
    /// The chain digest at `next_after`, to be presented with it.
    pub next_digest: Digest,
    /// The sequence of the newest command of the stream; 0 when it has none.
    pub last_seq: u64,
    /// The command whose result is due next; absent when every command has one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object::option")]
    #[schema(nullable = false)]
    pub head: Option<Head>,
    /// The stream's count of cancels, up to the last that `cancelled` tells: to be presented with
    /// the next poll, which then tells newer ones only. 0 where the presented one is above the
    /// stream's: the next poll tells them all.
    #[serde(default)]
    pub cancel_rev: u64,
    /// Commands without a result that were cancelled after the presented `cancelRev`, in the order
    /// of the cancels, at most 256; the next poll tells the rest at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "object::list")]
    pub cancelled: Vec<Cancelled>,
    /// The database's time at the read.
    pub server_time: DateTime<Utc>,
    /// True when a later poll of the same stream released this one. Whoever gets it backs off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
}

/// The command whose result is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// Its sequence.
    pub seq: u64,
    /// For how long it has existed, in whole seconds of the database's time.
    pub age_seconds: u64,
}

/// A command that somebody wants to end early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Its id.
    pub command_id: String,
    /// Its sequence.
    pub seq: u64,
}

/// One command of a stream.
///
/// `Debug` tells the size of the body and not the body, which can be private.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Command {
    /// `cmd_` and 32 characters, derived from Site, environment and the producer's key.
    pub command_id: String,
    /// Its place in the stream: 1 and up, without a gap.
    pub seq: u64,
    /// What a handler should do, in the words of the producer.
    pub kind: String,
    /// The Run that it belongs to, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run_id: Option<String>,
    /// After this time of the database the command is voided once its result is due. With six
    /// places of the second, as it is in the digest.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "micros")]
    #[schema(nullable = false)]
    pub not_after: Option<DateTime<Utc>>,
    /// SHA-256 over the command's fields; `docs/PROTOCOL.md` has the layout.
    pub digest: Digest,
    /// The database's time when it was enqueued.
    pub created_at: DateTime<Utc>,
    /// True where the command will have no result: it is not run. It is shown because the chain of
    /// digests goes through it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub voided: bool,
    /// The exact JSON text that the producer gave.
    #[schema(value_type = serde_json::Value)]
    pub body: Box<RawValue>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The handler did what the command asks for.
    Succeeded,
    /// The handler tried and failed.
    Failed,
    /// The handler will never be able to execute this command.
    Rejected,
}

/// The body of `PUT /v1/site/commands/{commandId}/result`.
///
/// The identity of a result is the SHA-256 of the exact bytes of the body without outer white
/// space, so a Runtime keeps the bytes that it sent and sends those again.
///
/// `Debug` tells the outcome alone: what a handler says and answers can be private.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultBody {
    /// How the command ended.
    pub outcome: Outcome,
    /// A sentence for a person, at most 4,096 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
    /// What the handler answered: any JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>, nullable = false)]
    pub output: Option<Box<RawValue>>,
    /// The SHA-256 of the private output that counts, which was stored before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub private_output: Option<Digest>,
}

/// What a stored result is acknowledged with: the same for each repetition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The command that the result belongs to.
    pub command_id: String,
    /// The command's sequence.
    pub seq: u64,
    /// The SHA-256 of the stored result.
    pub digest: Digest,
    /// The stored outcome.
    pub outcome: Outcome,
    /// The database's time when the result was stored.
    pub received_at: DateTime<Utc>,
}

/// The answer to a stored result with `?next=`: the receipt, and what a poll after it would bring.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptAndNext {
    /// The receipt.
    #[serde(deserialize_with = "object::one")]
    pub receipt: Receipt,
    /// The page after the command. Absent where a poll would be refused: the result is a repetition
    /// by a Runtime whose stream was taken over.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object::option")]
    #[schema(nullable = false)]
    pub next: Option<CommandPage>,
}

/// The body of `PUT /v1/site/commands/results`: results of consecutive commands, in their order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultBatch {
    /// 1 to 64 results, each command once.
    #[serde(deserialize_with = "object::list")]
    #[schema(min_items = 1, max_items = 64)]
    pub results: Vec<BatchedResult>,
}

/// One result of a batch.
///
/// `Debug` tells the command and not the result, which can be private.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchedResult {
    /// The command that the result belongs to.
    pub command_id: String,
    /// A [`ResultBody`]: its exact text is the result's identity, as it is for a single result.
    #[schema(value_type = ResultBody)]
    pub result: Box<RawValue>,
}

/// The answer to a batch, always with status 200: what became of each result, in their order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchAnswer {
    /// One for each result of the batch.
    #[serde(deserialize_with = "object::list")]
    pub results: Vec<BatchedAnswer>,
    /// With `?next=`: what a poll after the last leading result with 200, 201 or `already_voided`
    /// would bring; absent where the first has another problem, and where a poll would be refused.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object::option")]
    #[schema(nullable = false)]
    pub next: Option<CommandPage>,
}

/// What became of one result: a receipt or a problem.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchedAnswer {
    /// The command.
    pub command_id: String,
    /// The status that the result would have had alone.
    pub status: u16,
    /// With 200 and 201.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object::option")]
    #[schema(nullable = false)]
    pub receipt: Option<Receipt>,
    /// With any other status.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object::option")]
    #[schema(nullable = false)]
    pub problem: Option<Problem>,
}

/// What a stored private output is acknowledged with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputReceipt {
    /// The command that the output belongs to.
    pub command_id: String,
    /// The SHA-256 of its bytes.
    pub digest: Digest,
    /// How many bytes it has.
    pub bytes: u64,
    /// The database's time when it was stored.
    pub stored_at: DateTime<Utc>,
}

/// The one spelling of `notAfter`: it is part of the command's digest.
mod micros {
    use chrono::{DateTime, SecondsFormat, Utc};
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        time: &Option<DateTime<Utc>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => {
                serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Micros, true))
            }
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<DateTime<Utc>>, D::Error> {
        Option::<DateTime<Utc>>::deserialize(deserializer)
    }
}

impl fmt::Debug for BatchedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchedResult")
            .field("command_id", &self.command_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("command_id", &self.command_id)
            .field("seq", &self.seq)
            .field("kind", &self.kind)
            .field("run_id", &self.run_id)
            .field("not_after", &self.not_after)
            .field("voided", &self.voided)
            .field("digest", &self.digest)
            .field("created_at", &self.created_at)
            .field("body_bytes", &self.body.get().len())
            .finish()
    }
}

impl fmt::Debug for ResultBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultBody").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_form_leaves_bodies_out() {
        let body = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let command = Command {
            command_id: "cmd_1".to_owned(),
            seq: 7,
            kind: "slurm.submit".to_owned(),
            run_id: None,
            not_after: None,
            voided: false,
            digest: Digest::ZERO,
            created_at: DateTime::<Utc>::UNIX_EPOCH,
            body: body(r#"{"token":"private"}"#),
        };
        let page = CommandPage {
            commands: vec![command],
            next_after: 7,
            next_digest: Digest::ZERO,
            last_seq: 7,
            head: None,
            cancel_rev: 0,
            cancelled: Vec::new(),
            server_time: DateTime::<Utc>::UNIX_EPOCH,
            superseded: false,
        };
        let told = format!("{page:?}");
        assert!(told.contains("cmd_1") && told.contains("body_bytes: 19"), "{told}");
        assert!(!told.contains("private"), "{told}");

        let result = ResultBody {
            outcome: Outcome::Failed,
            detail: Some("private detail".to_owned()),
            output: Some(body(r#""private output""#)),
            private_output: None,
        };
        let told = format!("{result:?}");
        assert!(told.contains("Failed"), "{told}");
        assert!(!told.contains("private"), "{told}");
    }
}
