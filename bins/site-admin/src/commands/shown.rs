//! A command as it is printed, in a list or by itself.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use site_coordination::{CommandSummary, JsonText};

use crate::Failure;

/// A command with all that is known of it; its bodies are the exact texts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    seq: i64,
    command_id: String,
    key: String,
    kind: String,
    run_id: Option<String>,
    not_after: Option<DateTime<Utc>>,
    digest: String,
    created_at: DateTime<Utc>,
    /// `waiting`, or how it ended.
    state: &'static str,
    cancelled_at: Option<DateTime<Utc>>,
    voided: Option<ShownVoid>,
    body: Option<Box<RawValue>>,
    result: Option<ShownResult>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownResult {
    outcome: &'static str,
    digest: String,
    output_digest: Option<String>,
    received_at: DateTime<Utc>,
    body: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownVoid {
    reason: &'static str,
    note: Option<String>,
    voided_at: DateTime<Utc>,
}

/// A command as a row of a list, which has no bodies.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Line(Shown);

impl Shown {
    /// # Errors
    ///
    /// Where a stored body is no JSON.
    pub(super) fn of(command: CommandSummary) -> Result<Self, Failure> {
        let result = match command.result {
            None => None,
            Some(result) => Some(ShownResult {
                outcome: result.outcome.as_str(),
                digest: result.digest.to_string(),
                output_digest: result.output_digest.map(|digest| digest.to_string()),
                received_at: result.received_at,
                body: raw(result.body)?,
            }),
        };
        let voided = command.voided.map(|voided| ShownVoid {
            reason: voided.reason.as_str(),
            note: voided.note,
            voided_at: voided.at,
        });
        let state = match (&result, &voided) {
            (Some(result), _) => result.outcome,
            (None, Some(_)) => "voided",
            (None, None) => "waiting",
        };
        Ok(Self {
            seq: command.seq.get(),
            command_id: command.id.as_str().to_owned(),
            key: command.key,
            kind: command.kind,
            run_id: command.run_id,
            not_after: command.not_after,
            digest: command.digest.to_string(),
            created_at: command.created_at,
            state,
            cancelled_at: command.cancelled_at,
            voided,
            body: raw(command.body)?,
            result,
        })
    }
}

impl Line {
    /// # Errors
    ///
    /// Where a stored body is no JSON.
    pub(super) fn of(command: CommandSummary) -> Result<Self, Failure> {
        Shown::of(command).map(Self)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown { seq, command_id, state, kind, key, cancelled_at, .. } = &self.0;
        let cancelled = if cancelled_at.is_some() { "yes" } else { "-" };
        write!(f, "{seq:>8} {command_id:36} {state:9} {cancelled:9} {kind:20} {key}")
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "command   {} at {}", self.command_id, self.seq)?;
        writeln!(f, "key       {}", self.key)?;
        writeln!(f, "kind      {}", self.kind)?;
        if let Some(run) = &self.run_id {
            writeln!(f, "run       {run}")?;
        }
        writeln!(f, "enqueued  {}", time(self.created_at))?;
        if let Some(time_limit) = self.not_after {
            writeln!(f, "not after {}", time(time_limit))?;
        }
        if let Some(at) = self.cancelled_at {
            writeln!(f, "cancelled {}", time(at))?;
        }
        writeln!(f, "digest    {}", self.digest)?;
        write!(f, "state     {}", self.state)?;
        if let Some(result) = &self.result {
            let ShownResult { digest, received_at, .. } = result;
            write!(f, " at {}, digest {digest}", time(*received_at))?;
            if let Some(output) = &result.output_digest {
                write!(f, "\noutput    {output}")?;
            }
        }
        if let Some(ShownVoid { reason, note, voided_at }) = &self.voided {
            write!(f, " at {}, {reason}", time(*voided_at))?;
            note.iter().try_for_each(|note| write!(f, ": {note}"))?;
        }
        let result = self.result.as_ref().and_then(|result| result.body.as_ref());
        for (name, body) in [("body", self.body.as_ref()), ("result", result)] {
            if let Some(body) = body {
                write!(f, "\n{name}\n{}", body.get())?;
            }
        }
        Ok(())
    }
}

fn raw(body: Option<JsonText>) -> Result<Option<Box<RawValue>>, Failure> {
    body.map(|text| RawValue::from_string(text.into_string()))
        .transpose()
        .map_err(|error| Failure::refused(&error))
}

/// A time as it is shown to a person.
pub(crate) fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}
