//! `cargo xtask bench commands`: the ordered commands of Sites, measured on everything that is real:
//! a durable PostgreSQL, `site-api`, TLS, the producer's crate and the Runtime's client.

pub(super) mod bare_server;
mod check;
mod cost;
pub(super) mod enqueuers;
mod fleet;
mod floor;
mod footprint;
mod history;
mod idle_latency;
mod linked;
mod load;
mod network;
pub(super) mod notify;
mod streams;

use std::error::Error;

use clap::{Args, ValueEnum};

use super::{figure::Part, report::Report, world::Bench};
use crate::stop::Stop;

#[derive(Args)]
pub(crate) struct Commands {
    /// One object a line, `{"figure", "value", "unit", "floor", "ratio"}`, in place of tables
    #[arg(long)]
    json: bool,
    /// Few numbers, with the programs as they are built: shows that it works and measures nothing
    #[arg(long)]
    quick: bool,
    /// Measures these parts only, and writes no page
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Subject>,
}

/// What is measured, in the order of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// Results a second on one and two streams, at batches of 1, 16 and 64
    Streams,
    /// Results a second of ten Sites at once
    Sites,
    /// From a producer's call to the command in the Runtime's hand
    Idle,
    /// One call alone, beside a commit and beside a bare server
    Network,
    /// Memory, connections, transactions and the start of a listener with nothing to do
    Footprint,
    /// The cost of a hundred thousand commands before, and of a million
    History,
    /// One, ten and a hundred listeners on one database
    Fleet,
}

impl Commands {
    pub(crate) fn quick(&self) -> bool {
        self.quick
    }
}

pub(crate) async fn run(stop: &Stop, commands: &Commands) -> Result<(), Box<dyn Error>> {
    // Ended like this, everything that was started ends with its values.
    stop.unless(measure(commands)).await?
}

async fn measure(commands: &Commands) -> Result<(), Box<dyn Error>> {
    let bench = Bench::start(commands.quick).await?;
    let mut report = Report::new(commands.json);
    for subject in Subject::value_variants() {
        if !commands.only.is_empty() && !commands.only.contains(subject) {
            continue;
        }
        report.tell(subject.measure(&bench).await?)?;
    }
    if !commands.quick && commands.only.is_empty() {
        report.write("commands", INTRODUCTION, &bench).await?;
    }
    Ok(())
}

impl Subject {
    async fn measure(self, bench: &Bench) -> Result<Part, Box<dyn Error>> {
        match self {
            Self::Streams => streams::measure_streams(bench).await,
            Self::Sites => streams::measure_sites(bench).await,
            Self::Idle => idle_latency::measure(bench).await,
            Self::Network => network::measure(bench).await,
            Self::Footprint => footprint::measure(bench).await,
            Self::History => history::measure(bench).await,
            Self::Fleet => fleet::measure(bench).await,
        }
    }
}

const INTRODUCTION: &str = "\
Only ratios carry over to another machine. A figure stands beside its floor where it has one, measured in
turns with it in the same minutes. The ratio of a throughput is the median over the rounds, that of a
time the quotient of the quantiles of all rounds; the lowest and the highest say how quiet the machine
was. Every load is checked as a whole, by what its producers and its Runtime
were told and by what the database holds in the end: one gap, reorder, loss or second result, and the
run fails as void. Targets are for the ratio, or for the value where there is no floor.";
