//! One load: enqueuers and a Runtime on each of some streams, for a while, then everything answered
//! and everything checked.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use site_coordination::Producer;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

use super::{
    check::{self, Record},
    enqueuers::{Enqueuing, Told, backlog},
    linked::{Answered, Answering, LinkedRuntime, Pace},
};
use crate::bench::world::{Bench, BenchSite};

/// How long a load runs before it is measured, and how long it is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
}

/// A Site with its Runtime and the producer of its commands.
pub(crate) struct Loaded {
    site: BenchSite,
    producer: Producer,
    runtime: LinkedRuntime,
}

impl Times {
    pub(crate) fn of(bench: &Bench) -> Self {
        let milliseconds = Duration::from_millis;
        if bench.quick {
            Self { warm_up: milliseconds(300), window: milliseconds(700) }
        } else {
            Self { warm_up: milliseconds(1000), window: milliseconds(3000) }
        }
    }
}

impl Loaded {
    /// A Site whose commands have all been answered, and whose commands come from `producer`.
    pub(crate) async fn new(
        bench: &Bench,
        site: BenchSite,
        producer: &Producer,
    ) -> Result<Self, Box<dyn Error>> {
        let runtime = LinkedRuntime::at_the_end(bench, &site).await?;
        Ok(Self { site, producer: producer.clone(), runtime })
    }

    /// The Site, without its Runtime and the producer.
    pub(crate) fn into_site(self) -> BenchSite {
        self.site
    }
}

/// Runs a load on each of some streams at once. Returns the results a second of all of them together,
/// or fails where one of them was not done right.
pub(crate) async fn run(
    bench: &Bench,
    streams: &mut Vec<Loaded>,
    pace: Pace,
    times: Times,
    load: u32,
) -> Result<f64, Box<dyn Error>> {
    let begun = Instant::now();
    let measured = begun + times.warm_up..begun + times.warm_up + times.window;
    let mut running = JoinSet::new();
    for stream in streams.drain(..) {
        running.spawn(stream.load(pace, measured.end, load));
    }
    let database = bench.superuser().await?;
    let mut results = 0_u32;
    while let Some(ended) = running.join_next().await {
        let Loading { loaded, after, told, answered } =
            ended?.map_err(|failed| failed as Box<dyn Error>)?;
        let stored = check::stored(&database, &loaded.site.stream, after).await?;
        let record = Record { after, told, answered, stored };
        record.check()?;
        let within = record.answered.iter().filter(|answer| measured.contains(&answer.at));
        results += u32::try_from(within.count())?;
        streams.push(loaded);
    }
    Ok(f64::from(results) / times.window.as_secs_f64())
}

/// What a load leaves.
struct Loading {
    loaded: Loaded,
    after: u64,
    told: Vec<Told>,
    answered: Vec<Answered>,
}

impl Loaded {
    /// Enqueues and answers until a moment, and answers what is left then.
    async fn load(mut self, pace: Pace, until: Instant, load: u32) -> Result<Loading, Failed> {
        let after = self.runtime.after();
        let (last, known) = watch::channel(None);
        let batch = match pace {
            Pace::Pages | Pace::Next => 1,
            Pace::Batches(size) => size,
        };
        let room = Arc::new(Semaphore::new(backlog(batch)));
        let enqueuing = Enqueuing {
            producer: self.producer.clone(),
            stream: self.site.stream.clone(),
            room: Arc::clone(&room),
            batch,
            load,
            until,
        };
        let enqueuing = async {
            let told = enqueuing.run().await?;
            let commands: usize = told.iter().map(Vec::len).sum();
            last.send_replace(Some(after + commands as u64));
            Ok::<_, Failed>(told)
        };
        let answering =
            async { Ok(self.runtime.answer(pace, Answering { last: known, room }).await?) };
        let (told, answered) = tokio::try_join!(enqueuing, answering)
            .map_err(|error| format!("{error}\nsite-api:\n{}", self.site.listener.tail()))?;
        Ok(Loading { loaded: self, after, told, answered })
    }
}

/// An error that can leave its task.
type Failed = Box<dyn Error + Send + Sync>;
