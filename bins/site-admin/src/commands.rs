//! `site-admin commands`: what an administrator does with the commands of a stream.

mod enqueue;
mod line;
mod list;
mod show;
mod shown;

use clap::{Args, Subcommand};
use database::{Pool, PoolLimits};
use service_kit::Settings;
use site_coordination::{
    CommandId, Environment, Invalid, PRODUCER_ROLE, Producer, ProducerKey, SiteId, Stream,
};

use crate::{
    Failure,
    database::{PRODUCER_URL, database_url},
    exit::Exit,
    output::Format,
};

/// How many commands without an ending a stream takes before it refuses more.
const BACKLOG: &str = "SITE_COORDINATION_BACKLOG";

#[derive(Subcommand)]
pub(crate) enum Commands {
    /// Put one command, or one for each line of a file, at the end of a stream.
    ///
    /// Prints a line for each: its sequence, its id, and `new` or `known`.
    Enqueue(enqueue::Enqueue),
    /// List commands of a stream in order, with the state of each.
    List(list::List),
    /// Show one command of a stream with its bodies.
    Show(show::Show),
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
    let mut settings = Settings::from_process();
    let url = settings.required_secret_as(PRODUCER_URL, database_url);
    let backlog = settings.or_default(BACKLOG, Producer::BACKLOG, backlog);
    let url = settings.accept(url)?;
    PRODUCER_ROLE.check(&url).await?;
    let pool = Pool::new(&url, "site-admin", PoolLimits::default());
    let producer = Producer::new(pool).with_backlog(backlog);
    match command {
        Commands::Enqueue(arguments) => enqueue::run(&producer, arguments, format).await?,
        Commands::List(arguments) => list::run(&producer, arguments, format).await?,
        Commands::Show(arguments) => show::run(&producer, arguments, format).await?,
    }
    Ok(Exit::Done)
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

/// An argument's parser of one of our `parse` functions.
fn parser<T>(
    parse: fn(&str) -> Result<T, Invalid>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: 'static,
{
    move |text| parse(text).map_err(|error| error.to_string())
}
