//! `site-admin commands list`.

use clap::Args;
use site_coordination::{Producer, Seq};

use super::{StreamArguments, parser, shown::Line};
use crate::{Failure, output::Format};

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

pub(super) async fn run(
    producer: &Producer,
    arguments: List,
    format: Format,
) -> Result<(), Failure> {
    let stream = arguments.stream.stream();
    let commands = producer.list(&stream, arguments.after, arguments.limit).await?;
    format
        .heading(format_args!("{:>8} {:36} {:9} {:20} KEY", "SEQ", "COMMAND", "STATE", "KIND"))?;
    commands.into_iter().try_for_each(|command| format.print(&Line::of(command)?))
}
