//! `site-admin commands show`.

use clap::Args;
use site_coordination::Producer;

use super::{CommandArguments, shown::Shown, unknown_command};
use crate::{Failure, output::Format};

#[derive(Args)]
pub(crate) struct Show {
    #[command(flatten)]
    command: CommandArguments,
}

pub(super) async fn run(
    producer: &Producer,
    arguments: Show,
    format: Format,
) -> Result<(), Failure> {
    let (stream, id) = arguments.command.parts()?;
    let command = producer.show(&stream, &id).await?;
    format.print(&Shown::of(command.ok_or_else(unknown_command)?)?)
}
