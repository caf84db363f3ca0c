//! `site-admin commands enqueue`.

use std::{fmt, io::BufRead};

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;
use site_coordination::{
    CommandKind, Enqueued, JsonText, NewCommand, Producer, ProducerKey, RunId, Stream,
};

use super::{StreamArguments, parser};
use crate::{Failure, input, output::Format};

#[derive(Args)]
pub(crate) struct Enqueue {
    #[command(flatten)]
    stream: StreamArguments,
    /// What makes it the same command when it is enqueued again.
    #[arg(long, value_parser = parser(ProducerKey::parse), requires_all = ["kind", "body"])]
    key: Option<ProducerKey>,
    /// What the command asks for.
    #[arg(long, value_parser = parser(CommandKind::parse))]
    kind: Option<CommandKind>,
    /// The Run that it belongs to.
    #[arg(long, value_parser = parser(RunId::parse))]
    run_id: Option<RunId>,
    /// After this time, in RFC 3339, the command is voided once it is due and has no result. It is
    /// part of the command: the same key with another time is another command.
    #[arg(long, value_name = "TIME", value_parser = super::line::time)]
    not_after: Option<DateTime<Utc>>,
    /// A file with the JSON body, `-` for standard input.
    #[arg(long, value_name = "FILE")]
    body: Option<String>,
    /// In place of the above: a file, `-` for standard input, with one JSON object on each line:
    /// {"key", "kind", "runId"?, "notAfter"?, "body"}. Lines are enqueued in their order.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "kind", "run_id", "not_after", "body"],
          required_unless_present = "key")]
    lines: Option<String>,
}

pub(super) async fn run(
    producer: &Producer,
    arguments: Enqueue,
    format: Format,
) -> Result<(), Failure> {
    let stream = arguments.stream.stream();
    let enqueued = match (arguments.lines, arguments.key, arguments.kind, arguments.body) {
        (Some(file), ..) => enqueue_lines(producer, &stream, &file, format).await,
        (None, Some(key), Some(kind), Some(file)) => {
            let text = input::read(&file, 2 * JsonText::MAX_BYTES)?;
            let body = JsonText::parse(&text)
                .map_err(|error| Failure::data(format!("{file}: {error}")))?;
            let (run_id, not_after) = (arguments.run_id, arguments.not_after);
            let command = NewCommand { key, kind, run_id, not_after, body };
            format.print(&Place::of(&producer.enqueue(&stream, command).await?))
        }
        // The parser of the arguments requires the other three with a key.
        _ => Err(Failure::data("a command needs --key, --kind and --body")),
    };
    producer.flush_hints().await;
    enqueued
}

/// Enqueues in batches; what was enqueued before a wrong line stays, and running it again is safe.
async fn enqueue_lines(
    producer: &Producer,
    stream: &Stream,
    file: &str,
    format: Format,
) -> Result<(), Failure> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    for (number, line) in (1..).zip(input::open(file)?.lines()) {
        let wrong = |error: String| Failure::data(format!("{file}, line {number}: {error}"));
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let command = super::line::parse(&line).map_err(wrong)?;
        if batch.len() == Producer::MOST_AT_ONCE
            || bytes + command.body.as_str().len() > JsonText::MAX_BYTES
        {
            enqueue_batch(producer, stream, std::mem::take(&mut batch), format).await?;
            bytes = 0;
        }
        bytes += command.body.as_str().len();
        batch.push(command);
    }
    enqueue_batch(producer, stream, batch, format).await
}

async fn enqueue_batch(
    producer: &Producer,
    stream: &Stream,
    batch: Vec<NewCommand>,
    format: Format,
) -> Result<(), Failure> {
    for enqueued in producer.enqueue_many(stream, batch).await? {
        format.print(&Place::of(&enqueued))?;
    }
    Ok(())
}

/// Where a command is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    seq: i64,
    command_id: String,
    created_at: DateTime<Utc>,
    new: bool,
}

impl Place {
    fn of(enqueued: &Enqueued) -> Self {
        Self {
            seq: enqueued.seq.get(),
            command_id: enqueued.id.as_str().to_owned(),
            created_at: enqueued.created_at,
            new: enqueued.new,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.new { "new" } else { "known" };
        write!(f, "{} {} {state}", self.seq, self.command_id)
    }
}
