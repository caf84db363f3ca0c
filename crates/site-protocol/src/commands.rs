//! Bodies of the command routes.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Digest;

/// The header in which a Runtime names the generation that it writes with, a decimal number.
///
/// Both command routes require it. Until a Runtime opens sessions, the generation is 1.
pub const RUNTIME_GENERATION_HEADER: &str = "runtime-generation";

/// The answer to `GET /v1/site/commands/?after=&afterDigest=&limit=&wait=`: the commands after a
/// sequence, in order. Reading claims nothing: the same question gets the same commands again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandPage {
    /// Consecutive commands, the first with `after + 1`; empty when there are none.
    pub commands: Vec<Command>,
    /// The sequence to ask after next: that of the last command here, else `after`.
    pub next_after: u64,
    /// The chain digest at `next_after`, to be presented with it.
    pub next_digest: Digest,
    /// The sequence of the newest command of the stream; 0 when it has none.
    pub last_seq: u64,
    /// The command whose result is due next; absent when every command has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
    /// The database's time at the read.
    pub server_time: DateTime<Utc>,
    /// True when a later poll of the same stream released this one. Whoever gets it backs off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub superseded: bool,
}

/// The command whose result is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// Its sequence.
    pub seq: u64,
    /// For how long it has existed, in whole seconds of the database's time.
    pub age_seconds: u64,
}

/// One command of a stream.
///
/// `Debug` tells the size of the body and not the body, which can be private.
#[derive(Clone, Serialize, Deserialize)]
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
    pub run_id: Option<String>,
    /// SHA-256 over the command's fields; `docs/PROTOCOL.md` has the layout.
    pub digest: Digest,
    /// The database's time when it was enqueued.
    pub created_at: DateTime<Utc>,
    /// The exact JSON text that the producer gave.
    pub body: Box<RawValue>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultBody {
    /// How the command ended.
    pub outcome: Outcome,
    /// A sentence for a person, at most 4,096 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What the handler answered: any JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
}

/// What a stored result is acknowledged with: the same for each repetition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("command_id", &self.command_id)
            .field("seq", &self.seq)
            .field("kind", &self.kind)
            .field("run_id", &self.run_id)
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
        };
        let told = format!("{result:?}");
        assert!(told.contains("Failed"), "{told}");
        assert!(!told.contains("private"), "{told}");
    }
}
