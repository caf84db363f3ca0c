//! The lane `commands`: Sites, listeners and Runtimes under faults, and a check of the whole
//! history.
//!
//! docs/QUALIFICATION.md says what it does and how to read it.

mod check;
mod cluster;
mod fault;
mod faults;
mod history;
mod linked;
mod producers;
mod read;
mod report;
mod schedule;
mod supervisor;
mod world;

use std::{
    error::Error,
    hash::{BuildHasher, RandomState},
    io::stdout,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use database::{Pool, PoolLimits};
use site_coordination::Producer;
use test_support::{Faketime, postgres::Machine};
use tokio::task::JoinError;

use crate::{
    step::{self, command, root},
    stop::Stop,
};

use cluster::DATABASE;
use history::{History, LaneEnd, Recorder};
use linked::Linked;
use producers::{Load, Producers};
use world::World;

/// How long everything may take to recover and to end, once the faults are over.
const RECOVERS_WITHIN: Duration = Duration::from_secs(180);

/// Between two looks at what is missing.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

#[derive(Args)]
pub(crate) struct Arguments {
    /// How long the faults go on
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    seconds: u32,
    /// The seed of the schedule of faults; without it each run takes another, and prints it
    #[arg(long)]
    seed: Option<u64>,
    /// One JSON object a claim, on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(stop: &Stop, arguments: Arguments) -> Result<(), Box<dyn Error>> {
    step::run(stop, command("cargo", &["build", "--workspace", "--bins"])).await?;
    let seed = arguments.seed.unwrap_or_else(|| RandomState::new().hash_one(0) >> 32);
    let length = Duration::from_secs(arguments.seconds.into());
    eprintln!("\n== {length:?} of faults by the seed {seed}");
    // Not interrupted: a package is installed whole.
    let machine = Machine::of_this_process(&root().join("target"));
    let installation = machine.postgres(|what| eprintln!("{what}"))?;
    let faketime = Faketime::find_or_install()
        .inspect_err(|error| eprintln!("no clock is off in this run: {error}"))
        .ok();
    let world = World::start(&installation, faketime, Recorder::begin(), seed);
    let world = Arc::new(stop.unless(world).await??);
    let outcome = play(stop, &world, seed, length).await;
    let ended = world.end().await;
    let history = outcome?;
    ended?;
    let findings = check::check(&history);
    if report::write(&mut stdout().lock(), &history, &findings, arguments.json)? {
        return Ok(());
    }
    Err(format!("a promise was broken; --seed {seed} has the same faults again").into())
}

/// Producers and Runtimes work while everything is broken; then everything recovers, and ends.
async fn play(
    stop: &Stop,
    world: &Arc<World>,
    seed: u64,
    length: Duration,
) -> Result<History, Box<dyn Error>> {
    let recorder = &world.recorder;
    let url = world.access.role_url("site_coordination_producer", DATABASE);
    let mut producers = Vec::new();
    for (number, site) in (1..).zip(&world.sites) {
        let load = Load {
            stream: site.name.clone(),
            url: url.clone(),
            producers: 4,
            slow_producers: 1,
            longest_list: 12,
            backlog: 300,
            seed: seed.wrapping_add(number),
        };
        producers.push(Producers::start(&load, recorder)?);
    }
    let linked: Vec<_> = world.linked(seed).map(|setup| Linked::start(setup, recorder)).collect();
    let schedule = world.can_be_had(schedule::draw(seed, length));
    recorder.scheduled(schedule.iter().map(|fault| fault.kind.name()).collect());
    faults::bring_about(stop, world, schedule).await?;
    let faults_stopped = recorder.now();
    eprintln!("== the faults are over: everything recovers");
    let status = Producer::new(Pool::new(&url.parse()?, "qualify", PoolLimits::default()));
    let recovers = async {
        for producers in producers {
            producers.finish().await?;
        }
        while !world.missing(&status).await.is_empty() {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Ok::<_, JoinError>(())
    };
    let missing = match stop.unless(tokio::time::timeout(RECOVERS_WITHIN, recovers)).await? {
        Ok(recovered) => recovered.map(|()| Vec::new())?,
        Err(_) => world.missing(&status).await,
    };
    let recovered = missing.is_empty().then(|| recorder.now());
    recorder.end(LaneEnd { faults_stopped, recovered, bound: RECOVERS_WITHIN, missing });
    for linked in linked {
        linked.finish().await.map_err(|trouble| trouble as Box<dyn Error>)?;
    }
    world.stop_programs().await?;
    world.history().await
}
