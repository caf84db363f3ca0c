//! `site-admin commands`: enqueue, list and show commands of a stream.

use std::io::{BufRead, BufReader, Read};

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use database::{Pool, PoolLimits};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use service_kit::Settings;
use site_coordination::{
    CommandId, CommandKind, CommandSummary, Enqueued, Environment, Invalid, JsonText, NewCommand,
    PRODUCER_ROLE, Producer, ProducerKey, RunId, Seq, SiteId, Stream,
};

use crate::{
    Failure,
    database::{PRODUCER_URL, database_url},
    output::print,
};

#[derive(Subcommand)]
pub(crate) enum Commands {
    /// Put one command, or one for each line of a file, at the end of a stream.
    ///
    /// Prints a line for each: its sequence, its id, and `new` or `known`.
    Enqueue(Enqueue),
    /// List commands of a stream in order, with the outcome of each.
    List(List),
    /// Show one command of a stream with its bodies, as JSON.
    Show(Show),
}

#[derive(Args)]
pub(crate) struct StreamArguments {
    /// The Site.
    #[arg(long, value_parser = parser(SiteId::parse))]
    site: SiteId,
    /// The environment: k8s or slurm.
    #[arg(long, value_parser = parser(Environment::parse))]
    environment: Environment,
}

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
    /// A file with the JSON body, `-` for standard input.
    #[arg(long, value_name = "FILE")]
    body: Option<String>,
    /// In place of the above: a file, `-` for standard input, with one JSON object on each line:
    /// {"key", "kind", "runId"?, "body"}. Lines are enqueued in their order.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "kind", "run_id", "body"],
          required_unless_present = "key")]
    lines: Option<String>,
}

#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    stream: StreamArguments,
    /// Only commands after this sequence.
    #[arg(long, default_value = "0", value_parser = parser(Seq::parse))]
    after: Seq,
    /// At most so many, 1 to 1,000.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

#[derive(Args)]
pub(crate) struct Show {
    #[command(flatten)]
    stream: StreamArguments,
    /// The command's id.
    #[arg(value_parser = parser(CommandId::parse), required_unless_present = "key")]
    command_id: Option<CommandId>,
    /// In place of the id: the producer's key.
    #[arg(long, value_parser = parser(ProducerKey::parse), conflicts_with = "command_id")]
    key: Option<ProducerKey>,
}

pub(crate) async fn run(command: Commands) -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    let url = settings.required_secret_as(PRODUCER_URL, database_url);
    let url = settings.accept(url)?;
    PRODUCER_ROLE.check(&url).await?;
    let producer = Producer::new(Pool::new(&url, "site-admin", PoolLimits::default()));
    match command {
        Commands::Enqueue(arguments) => enqueue(&producer, arguments).await,
        Commands::List(arguments) => list(&producer, arguments).await,
        Commands::Show(arguments) => show(&producer, arguments).await,
    }
}

async fn enqueue(producer: &Producer, arguments: Enqueue) -> Result<(), Failure> {
    let stream = arguments.stream.stream();
    let enqueued = match (arguments.lines, arguments.key, arguments.kind, arguments.body) {
        (Some(file), ..) => enqueue_lines(producer, &stream, &file).await,
        (None, Some(key), Some(kind), Some(file)) => {
            let mut text = String::new();
            open(&file)?
                .take(2 * JsonText::MAX_BYTES as u64)
                .read_to_string(&mut text)
                .map_err(|error| Failure::data(format!("{file}: {error}")))?;
            let body = JsonText::parse(&text)
                .map_err(|error| Failure::data(format!("{file}: {error}")))?;
            let command = NewCommand { key, kind, run_id: arguments.run_id, not_after: None, body };
            print_enqueued(&producer.enqueue(&stream, command).await?)
        }
        // The parser of the arguments requires the other three with a key.
        _ => Err(Failure::data("a command needs --key, --kind and --body")),
    };
    producer.flush_hints().await;
    enqueued
}

/// Enqueues in batches; what was enqueued before a wrong line stays, and running it again is safe.
async fn enqueue_lines(producer: &Producer, stream: &Stream, file: &str) -> Result<(), Failure> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    for (number, line) in (1..).zip(open(file)?.lines()) {
        let wrong = |error: String| Failure::data(format!("{file}, line {number}: {error}"));
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let command = parse_line(&line).map_err(wrong)?;
        if batch.len() == Producer::MOST_AT_ONCE
            || bytes + command.body.as_str().len() > JsonText::MAX_BYTES
        {
            enqueue_batch(producer, stream, std::mem::take(&mut batch)).await?;
            bytes = 0;
        }
        bytes += command.body.as_str().len();
        batch.push(command);
    }
    enqueue_batch(producer, stream, batch).await
}

async fn enqueue_batch(
    producer: &Producer,
    stream: &Stream,
    batch: Vec<NewCommand>,
) -> Result<(), Failure> {
    for enqueued in producer.enqueue_many(stream, batch).await? {
        print_enqueued(&enqueued)?;
    }
    Ok(())
}

fn print_enqueued(enqueued: &Enqueued) -> Result<(), Failure> {
    let state = if enqueued.new { "new" } else { "known" };
    print(format_args!("{} {} {state}", enqueued.seq.get(), enqueued.id.as_str()))
}

async fn list(producer: &Producer, arguments: List) -> Result<(), Failure> {
    let stream = arguments.stream.stream();
    let commands = producer.list(&stream, arguments.after, arguments.limit).await?;
    print(format_args!("{:>8} {:36} {:9} {:20} KEY", "SEQ", "COMMAND", "OUTCOME", "KIND"))?;
    for CommandSummary { seq, id, kind, key, result, .. } in commands {
        let outcome = result.map_or("-", |result| result.outcome.as_str());
        let (seq, id) = (seq.get(), id.as_str());
        print(format_args!("{seq:>8} {id:36} {outcome:9} {kind:20} {key}"))?;
    }
    Ok(())
}

async fn show(producer: &Producer, arguments: Show) -> Result<(), Failure> {
    let stream = arguments.stream.stream();
    let id = match (arguments.command_id, arguments.key) {
        (Some(id), _) => id,
        (None, Some(key)) => CommandId::derive(&stream, &key),
        (None, None) => return Err(Failure::data("a command id or --key is needed")),
    };
    let command = producer
        .show(&stream, &id)
        .await?
        .ok_or_else(|| Failure::absent("the stream has no such command"))?;
    print(to_json(command)?)
}

fn to_json(command: CommandSummary) -> Result<String, Failure> {
    let raw = |body: Option<JsonText>| {
        body.map(|text| RawValue::from_string(text.into_string())).transpose()
    };
    let broken = |error: serde_json::Error| Failure::refused(&error);
    let result = match command.result {
        None => None,
        Some(result) => Some(ShownResult {
            outcome: result.outcome.as_str(),
            digest: result.digest.to_string(),
            received_at: result.received_at,
            body: raw(result.body).map_err(broken)?,
        }),
    };
    let shown = Shown {
        seq: command.seq.get(),
        command_id: command.id.as_str(),
        key: command.key,
        kind: command.kind,
        run_id: command.run_id,
        digest: command.digest.to_string(),
        created_at: command.created_at,
        body: raw(command.body).map_err(broken)?,
        result,
    };
    serde_json::to_string_pretty(&shown).map_err(broken)
}

/// A command as it is shown; its bodies are the exact texts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    seq: i64,
    command_id: &'a str,
    key: String,
    kind: String,
    run_id: Option<String>,
    digest: String,
    created_at: DateTime<Utc>,
    body: Option<Box<RawValue>>,
    result: Option<ShownResult>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownResult {
    outcome: &'static str,
    digest: String,
    received_at: DateTime<Utc>,
    body: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    key: &'a RawValue,
    #[serde(borrow)]
    kind: &'a RawValue,
    #[serde(borrow)]
    run_id: Option<&'a RawValue>,
    #[serde(borrow)]
    body: &'a RawValue,
}

fn parse_line(line: &str) -> Result<NewCommand, String> {
    let line: Line<'_> = serde_json::from_str(line).map_err(|error| line_error(&error))?;
    let invalid = |error: Invalid| error.to_string();
    let text = |name: &str, raw: &RawValue| {
        serde_json::from_str::<String>(raw.get()).map_err(|_| format!("{name} must be a text"))
    };
    let run_id = line.run_id.map(|raw| text("runId", raw)).transpose()?;
    Ok(NewCommand {
        key: ProducerKey::parse(&text("key", line.key)?).map_err(invalid)?,
        kind: CommandKind::parse(&text("kind", line.kind)?).map_err(invalid)?,
        run_id: run_id.as_deref().map(RunId::parse).transpose().map_err(invalid)?,
        not_after: None,
        body: JsonText::parse(line.body.get()).map_err(invalid)?,
    })
}

/// What is wrong with a line. The library quotes a value only where it is of another type, so that
/// the message then is ours.
fn line_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.starts_with("invalid ") {
        return "must be a JSON object".to_owned();
    }
    let what = text.split(" at line ").next().unwrap_or_default();
    format!("{what}, at column {}", error.column())
}

impl StreamArguments {
    fn stream(self) -> Stream {
        Stream { site: self.site, environment: self.environment }
    }
}

/// A file for reading, `-` for standard input.
fn open(file: &str) -> Result<Box<dyn BufRead>, Failure> {
    if file == "-" {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let opened =
        std::fs::File::open(file).map_err(|error| Failure::absent(format!("{file}: {error}")))?;
    Ok(Box::new(BufReader::new(opened)))
}

/// An argument's parser of one of our `parse` functions.
fn parser<T>(
    parse: fn(&str) -> Result<T, Invalid>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: 'static,
{
    move |text| parse(text).map_err(|error| error.to_string())
}
