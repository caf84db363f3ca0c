//! `site-admin commands wait`.

use std::time::Duration;

use clap::Args;
use database::Pool;
use site_coordination::{Ending, Outcome, Producer, Wakeups};

use super::{CommandArguments, shown::Shown, unknown_command};
use crate::{Failure, exit::Exit, output::Format};

#[derive(Args)]
pub(crate) struct Wait {
    #[command(flatten)]
    command: CommandArguments,
    /// For how many seconds, at most.
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(..=86_400))]
    within: u64,
}

pub(super) async fn run(
    producer: &Producer,
    pool: Pool,
    arguments: Wait,
    format: Format,
) -> Result<Exit, Failure> {
    let (stream, id) = arguments.command.parts()?;
    let wakeups = Wakeups::new(stream.site.clone());
    let listening = tokio::spawn(wakeups.clone().run(pool));
    let within = Duration::from_secs(arguments.within);
    let ending = producer.wait_result(&wakeups, stream.environment, &id, within).await;
    listening.abort();
    let exit = match ending? {
        None => Exit::NotYet,
        Some(Ending::Voided(_)) => Exit::Voided,
        Some(Ending::Result(result)) => match result.outcome {
            Outcome::Succeeded => Exit::Done,
            Outcome::Failed => Exit::Failed,
            Outcome::Rejected => Exit::Rejected,
        },
    };
    let command = producer.show(&stream, &id).await?.ok_or_else(unknown_command)?;
    format.print(&Shown::of(command)?)?;
    Ok(exit)
}
