//! From a producer's call to the command in the Runtime's hand, where nothing else goes on.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use site_coordination::{
    API_ROLE, Digest, Environment, JsonText, NewResult, Outcome, Page, PollRequest, Producer,
    RuntimeSide, Seq, Stream, Wakeups, Writer,
};

use super::{enqueuers::command, linked::LinkedRuntime, notify::Notify};
use crate::bench::{
    figure::{Figure, Part, Round, Target, quantile},
    world::{Bench, BenchSite, stream},
};

/// Between an answer and the next command: much longer than a delivery, so that the poll stands by
/// then.
const PACE: Duration = Duration::from_millis(20);

/// How many deliveries in how many turns of floor, HTTPS, and one process.
struct Size {
    turns: usize,
    deliveries: u32,
}

pub(crate) async fn measure(bench: &Bench) -> Result<Part, Box<dyn Error>> {
    let size = if bench.quick {
        Size { turns: 1, deliveries: 5 }
    } else {
        Size { turns: 6, deliveries: 150 }
    };
    let mut notify = Notify::new(bench).await?;
    let site = bench.site("bench-idle", Environment::Slurm).await?;
    let mut https = Https::new(bench, site, 0).await?;
    let mut inside = Inside::new(bench)?;
    // The first of everything opens connections and prepares statements.
    notify.turn(5).await?;
    https.turn(5).await?;
    inside.turn(5).await?;

    let (mut floors, mut by_https, mut from_commit, mut by_process) =
        (Turns::new(), Turns::new(), Turns::new(), Turns::new());
    for _ in 0..size.turns {
        floors.push(notify.turn(size.deliveries).await?);
        let (from_call, from_end) = https.turn(size.deliveries).await?;
        by_https.push(from_call);
        from_commit.push(from_end);
        by_process.push(inside.turn(size.deliveries).await?);
    }
    Ok(Part {
        title: "Idle delivery",
        method: METHOD.to_owned(),
        figures: vec![
            figure("idle delivery by HTTPS, p50", 0.50, &by_https, &floors)
                .aiming_at(Target::AtMost(1.2)),
            figure("idle delivery by HTTPS, p99", 0.99, &by_https, &floors)
                .aiming_at(Target::AtMost(2.0)),
            alone("idle delivery by HTTPS after the call's return, p50", 0.50, &from_commit),
            figure("idle delivery within one process, p50", 0.50, &by_process, &floors)
                .aiming_at(Target::AtMost(1.0)),
            figure("idle delivery within one process, p99", 0.99, &by_process, &floors),
        ],
    })
}

/// The deliveries of each turn, in milliseconds.
type Turns = Vec<Vec<f64>>;

/// A share of the deliveries: of all of them for the value and its floor, of each turn for the spread.
fn figure(name: &str, share: f64, turns: &Turns, floors: &Turns) -> Figure {
    let quantiles = |(turn, floor): (&Vec<f64>, &Vec<f64>)| Round {
        value: quantile(turn, share),
        floor: quantile(floor, share),
    };
    let rounds: Vec<Round> = turns.iter().zip(floors).map(quantiles).collect();
    let Figure { spread, .. } = Figure::of_rounds(name, "ms", &rounds);
    let all = |turns: &Turns| quantile(&turns.concat(), share);
    Figure { spread, ..Figure::beside(name, all(turns), "ms", all(floors)) }
}

fn alone(name: &str, share: f64, turns: &Turns) -> Figure {
    Figure::alone(name, quantile(&turns.concat(), share), "ms")
}

fn milliseconds(took: Duration) -> f64 {
    took.as_secs_f64() * 1000.0
}

impl Notify {
    async fn turn(&mut self, deliveries: u32) -> Result<Vec<f64>, Box<dyn Error>> {
        let body = command(0, 0, 0).body;
        let mut took = Vec::new();
        for _ in 0..deliveries {
            tokio::time::sleep(PACE).await;
            took.push(milliseconds(self.once(body.as_str()).await?));
        }
        Ok(took)
    }
}

/// The whole way: a producer, `site-api`, the client of a Runtime.
pub(crate) struct Https {
    site: BenchSite,
    producer: Producer,
    runtime: LinkedRuntime,
    load: u32,
    number: u32,
}

impl Https {
    /// A Site whose commands have all been answered; no load of the stream has this number.
    pub(crate) async fn new(
        bench: &Bench,
        site: BenchSite,
        load: u32,
    ) -> Result<Self, Box<dyn Error>> {
        let runtime = LinkedRuntime::at_the_end(bench, &site).await?;
        Ok(Self { site, producer: bench.producer()?, runtime, load, number: 0 })
    }

    /// The Site, without its Runtime and the producer.
    pub(crate) fn into_site(self) -> BenchSite {
        self.site
    }

    /// From the call's begin, and from its return, which is after the commit.
    pub(crate) async fn turn(
        &mut self,
        deliveries: u32,
    ) -> Result<(Vec<f64>, Vec<f64>), Box<dyn Error>> {
        let (mut from_call, mut from_end) = (Vec::new(), Vec::new());
        for _ in 0..deliveries {
            self.number += 1;
            let command = command(self.load, 0, self.number);
            let enqueuing = async {
                tokio::time::sleep(PACE).await;
                let begun = Instant::now();
                let enqueued = self.producer.enqueue(&self.site.stream, command).await?;
                Ok::<_, Box<dyn Error>>((begun, Instant::now(), enqueued))
            };
            let delivered = async { Ok((self.runtime.poll(64).await?, Instant::now())) };
            let ((begun, ended, enqueued), (page, delivered)) =
                tokio::try_join!(enqueuing, delivered)?;
            let found = page.commands.first().map(|command| command.command_id.as_str());
            if found != Some(enqueued.id.as_str()) || page.commands.len() != 1 {
                return Err("void: another command was delivered".into());
            }
            self.runtime.read(page);
            self.runtime.store_one(None).await?;
            from_call.push(milliseconds(delivered - begun));
            from_end.push(milliseconds(delivered.saturating_duration_since(ended)));
        }
        Ok((from_call, from_end))
    }
}

/// Producer and Runtime's side linked in one process, which wakes the poll itself.
struct Inside {
    stream: Stream,
    producer: Producer,
    runtime: RuntimeSide,
    wakeups: Wakeups,
    after: (Seq, Digest),
    number: u32,
}

impl Inside {
    fn new(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        let stream = stream("bench-inside", Environment::Slurm)?;
        let wakeups = Wakeups::new(stream.site.clone());
        tokio::spawn(wakeups.clone().run(bench.pool(API_ROLE)?));
        let runtime = RuntimeSide::new(bench.pool(API_ROLE)?, wakeups.clone());
        let after = (Seq::ZERO, Digest::ZERO);
        Ok(Self { stream, producer: bench.producer()?, runtime, wakeups, after, number: 0 })
    }

    async fn turn(&mut self, deliveries: u32) -> Result<Vec<f64>, Box<dyn Error>> {
        let mut took = Vec::new();
        for _ in 0..deliveries {
            self.number += 1;
            let command = command(0, 0, self.number);
            let enqueuing = async {
                tokio::time::sleep(PACE).await;
                let begun = Instant::now();
                let enqueued = self.producer.enqueue(&self.stream, command).await?;
                self.wakeups.wake(self.stream.environment);
                Ok::<_, Box<dyn Error>>((begun, enqueued))
            };
            let delivered = async { Ok((self.poll().await?, Instant::now())) };
            let ((begun, enqueued), (page, delivered)) = tokio::try_join!(enqueuing, delivered)?;
            let [command] = page.commands.as_slice() else {
                return Err("void: another number of commands was delivered".into());
            };
            if command.id != enqueued.id {
                return Err("void: another command was delivered".into());
            }
            self.after = (page.next_after, page.next_digest);
            let body = JsonText::parse(r#"{"jobId": 4711}"#)?;
            let command = command.id.clone();
            let outcome = Outcome::Succeeded;
            let result = NewResult { command, outcome, body, output: None };
            self.runtime.store_result(self.stream.environment, &Writer::FIRST, result).await?;
            took.push(milliseconds(delivered - begun));
        }
        Ok(took)
    }

    async fn poll(&self) -> Result<Page, Box<dyn Error>> {
        let request = PollRequest {
            writer: Writer::FIRST,
            after: self.after.0,
            after_digest: Some(self.after.1),
            cancel_rev: 0,
            limit: 64,
            bytes: 1 << 20,
            wait: Duration::from_secs(20),
        };
        let never = std::future::pending();
        Ok(self.runtime.poll(self.stream.environment, request, never).await?)
    }
}

const METHOD: &str = "\
A command of 1 KiB is enqueued while a poll waits and nothing else goes on; the next one comes after the
answer and a pause. The time runs from the begin of `Producer::enqueue` to the command in the Runtime's
hand, parsed and its chain checked; it holds the enqueue's own commit. By HTTPS: a producer in one
process, `site-api` in another, `site-client` as the Runtime. Within one process: producer and
`RuntimeSide` linked, the producer calls `Wakeups::wake` after its call; no HTTP.

The floor, measured in turns with them: an enqueue by a plain statement, `pg_notify` on the same
connection after its commit, and a select by the connection that listens, directly by the driver over
verified TLS; from the enqueue's begin to the row in hand. The time after the call's return has no floor
of its own: it is what a Runtime waits beyond the commit.";
