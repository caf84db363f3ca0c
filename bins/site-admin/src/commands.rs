//! `site-admin commands`: what an administrator does with the commands of a stream.

mod cancel;
mod enqueue;
pub mod line;
mod list;
mod prune;
mod show;
mod shown;
mod void;
mod wait;

use clap::{Args, Subcommand};
use database::{Pool, PoolLimits};
use service_kit::Settings;
use site_coordination::{
    CommandId, Environment, PRODUCER_ROLE, Producer, ProducerKey, SiteId, Stream,
};

use crate::{Failure, contexts::PRODUCER_URL, database::database_url, exit::Exit, output::Format};

pub(crate) use line::looks_like_a_field;
pub(crate) use shown::time;

/// How many commands without an ending a stream takes before it refuses more.
const BACKLOG: &str = "SITE_COORDINATION_BACKLOG";

#[derive(Subcommand)]
pub(crate) enum Commands {
    /// Put one command, or one for each line of a file, at the end of a stream.
    ///
    /// Prints a line for each: its sequence, its id, and `new` or `known`. A stream with as many
    /// commands without an ending as SITE_COORDINATION_BACKLOG says (10000) is full, and takes no
    /// more (69).
    Enqueue(enqueue::Enqueue),
    /// List commands of a stream in order, with the state of each.
    List(list::List),
    /// Show one command of a stream with its bodies.
    Show(show::Show),
    /// Wait for the ending of a command, and show it then.
    ///
    /// Exits with 0 where it succeeded, 10 where it failed, 11 where it was rejected, 12 where it
    /// was voided, and 75 where it has not ended in the given time.
    Wait(wait::Wait),
    /// Ask the Runtime to stop a command, whether it runs or waits.
    ///
    /// It is a wish: the command still ends with its result, or is voided. Cancelling again changes
    /// nothing. One that has ended can't be cancelled (65).
    Cancel(cancel::Cancel),
    /// End the command that is due without a result, so that those after it get theirs.
    ///
    /// For a command that never will have a result. What its handler does is not undone, and a
    /// result that comes later is refused. Only the command that is due can be voided (65).
    Void(void::Void),
    /// Delete what is older than retention wants it, of all streams, with the keeper's credential.
    ///
    /// Of a stream only the beginning goes, up to the first command that has to stay; a command
    /// without an ending always stays. It works beside everything else, in small steps, and may be
    /// stopped and run again.
    Prune(prune::Prune),
}

#[derive(Args)]
struct StreamArguments {
    /// The Site.
    #[arg(long, value_parser = parser(SiteId::parse))]
    site: SiteId,
    /// The environment: k8s or slurm.
    #[arg(long, value_parser = parser(Environment::parse))]
    environment: Environment,
}

/// One command of a stream.
#[derive(Args)]
struct CommandArguments {
    #[command(flatten)]
    stream: StreamArguments,
    /// The command's id.
    #[arg(value_parser = parser(CommandId::parse), required_unless_present = "key")]
    command_id: Option<CommandId>,
    /// In place of the id: the producer's key.
    #[arg(long, value_parser = parser(ProducerKey::parse), conflicts_with = "command_id")]
    key: Option<ProducerKey>,
}

pub(crate) async fn run(command: Commands, format: Format) -> Result<Exit, Failure> {
    if let Commands::Prune(arguments) = command {
        return prune::run(arguments, format).await.map(|()| Exit::Done);
    }
    let Connected { pool, producer } = connect().await?;
    match command {
        Commands::Enqueue(arguments) => enqueue::run(&producer, arguments, format).await?,
        Commands::List(arguments) => list::run(&producer, arguments, format).await?,
        Commands::Show(arguments) => show::run(&producer, arguments, format).await?,
        Commands::Wait(arguments) => return wait::run(&producer, pool, arguments, format).await,
        Commands::Cancel(arguments) => cancel::run(&producer, arguments, format).await?,
        Commands::Void(arguments) => void::run(&producer, arguments, format).await?,
        Commands::Prune(_) => {}
    }
    Ok(Exit::Done)
}

/// The database by the producer's credential, which was checked.
pub(crate) struct Connected {
    pool: Pool,
    pub(crate) producer: Producer,
}

/// # Errors
///
/// The settings are wrong, the database can't be reached, or the credential may do too much.
pub(crate) async fn connect() -> Result<Connected, Failure> {
    let mut settings = Settings::from_process();
    let url = settings.required_secret_as(PRODUCER_URL, database_url);
    let backlog = settings.or_default(BACKLOG, Producer::BACKLOG, backlog);
    let url = settings.accept(url)?;
    PRODUCER_ROLE.check(&url).await?;
    let pool = Pool::new(&url, "site-admin", PoolLimits::default());
    let producer = Producer::new(pool.clone()).with_backlog(backlog);
    Ok(Connected { pool, producer })
}

fn unknown_command() -> Failure {
    Failure::absent("the stream has no such command")
}

fn backlog(text: &str) -> Result<u32, &'static str> {
    match text.parse() {
        Ok(limit) if (1..=1_000_000).contains(&limit) => Ok(limit),
        _ => Err("must be a whole number from 1 to 1000000"),
    }
}

impl StreamArguments {
    fn stream(self) -> Stream {
        Stream { site: self.site, environment: self.environment }
    }
}

impl CommandArguments {
    fn parts(self) -> Result<(Stream, CommandId), Failure> {
        let stream = self.stream.stream();
        let id = match (self.command_id, self.key) {
            (Some(id), _) => id,
            (None, Some(key)) => CommandId::derive(&stream, &key),
            (None, None) => return Err(Failure::data("a command id or --key is needed")),
        };
        Ok((stream, id))
    }
}

/// An argument's parser of one of the `parse` functions of our contexts.
pub(crate) fn parser<T, E>(
    parse: fn(&str) -> Result<T, E>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: 'static,
    E: ToString + 'static,
{
    move |text| parse(text).map_err(|error| error.to_string())
}
