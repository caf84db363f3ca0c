//! One, ten and a hundred listeners on one database: what they cost together, and what those that work
//! notice of the others.

use std::error::Error;

use site_coordination::Environment;
use test_support::process::Process;

use super::{
    cost,
    floor::Floor,
    footprint::Polling,
    idle_latency::Https,
    linked::{LinkedRuntime, Pace},
    load::{self, Loaded, Times},
};
use crate::bench::{
    figure::{Figure, Part, Round, Target, quantile},
    world::{Bench, BenchSite},
};

/// So many work at once, at the most; the machine is no larger.
const MOST_BUSY: usize = 10;
const DELIVERIES: u32 = 300;

/// Sites with a listener each.
struct Fleet {
    sites: Vec<BenchSite>,
    /// The last load; each has keys of its own.
    load: u32,
}

pub(crate) async fn measure(bench: &Bench) -> Result<Part, Box<dyn Error>> {
    bench.empty().await?;
    let mut floor = Floor::plain(bench, "floor_fleet").await?;
    let mut fleet = Fleet { sites: Vec::new(), load: 0 };
    let mut figures = Vec::new();
    let sizes: &[usize] = if bench.quick { &[1, 2] } else { &[1, 10, 100] };
    for size in sizes {
        fleet.grow(bench, *size).await?;
        figures.extend(fleet.idle_cost(bench).await?);
        figures.extend(fleet.deliveries(bench).await?);
        figures.push(fleet.throughput(bench, &mut floor).await?);
    }
    Ok(Part { title: "Many listeners on one database", method: METHOD.to_owned(), figures })
}

impl Fleet {
    async fn grow(&mut self, bench: &Bench, size: usize) -> Result<(), Box<dyn Error>> {
        for number in self.sites.len()..size {
            let name = format!("bench-fleet-{number}");
            self.sites.push(bench.site(&name, Environment::Slurm).await?);
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self.sites.len() {
            1 => "1 listener".to_owned(),
            count => format!("{count} listeners"),
        }
    }

    /// A Runtime of each Site has a poll that waits.
    async fn idle_cost(&self, bench: &Bench) -> Result<Vec<Figure>, Box<dyn Error>> {
        let polling = self.polling(bench, 0).await?;
        let processes: Vec<&Process> = self.sites.iter().map(|site| &site.listener).collect();
        let cost = cost::measure(bench, &processes).await?;
        polling.iter().try_for_each(Polling::still)?;
        let (name, count) = (self.name(), self.sites.len() as f64);
        let all =
            |what: &str, value, unit| Figure::alone(format!("{name} idle, {what}"), value, unit);
        Ok(vec![
            all("memory of all, what they share counted once", cost.shared_once_mib, "MiB"),
            all("database connections", cost.connections, "")
                .aiming_at(Target::AtMost(2.0 * count)),
            all("transactions", cost.transactions_a_second, "1/s").aiming_at(Target::AtMost(count)),
            all("processor", cost.seconds_a_minute, "s/min"),
        ])
    }

    /// At the first Site; at all others a poll waits.
    async fn deliveries(&mut self, bench: &Bench) -> Result<Vec<Figure>, Box<dyn Error>> {
        let polling = self.polling(bench, 1).await?;
        let number = self.next_load();
        let mut https = Https::new(bench, self.sites.remove(0), number).await?;
        https.turn(10).await?;
        let (took, _) = https.turn(if bench.quick { 5 } else { DELIVERIES }).await?;
        self.sites.insert(0, https.into_site());
        polling.iter().try_for_each(Polling::still)?;
        let delivery = |name: &str, share| {
            Figure::alone(
                format!("{}, idle delivery {name}", self.name()),
                quantile(&took, share),
                "ms",
            )
        };
        Ok(vec![delivery("p50", 0.5), delivery("p99", 0.99)])
    }

    /// Ten of them work, or all where there are fewer; at all others a poll waits.
    async fn throughput(
        &mut self,
        bench: &Bench,
        floor: &mut Floor,
    ) -> Result<Figure, Box<dyn Error>> {
        let busy = self.sites.len().min(MOST_BUSY);
        let polling = self.polling(bench, busy).await?;
        let producer = bench.producer_of(busy)?;
        let mut streams = Vec::new();
        for site in self.sites.drain(..busy) {
            streams.push(Loaded::new(bench, site, &producer).await?);
        }
        let (times, count) = (Times::of(bench), u32::try_from(busy)?);
        let mut rounds = Vec::new();
        for _ in 0..if bench.quick { 1 } else { 2 } {
            let before = floor.run(bench, count, times).await?;
            let number = self.next_load();
            let value = load::run(bench, &mut streams, Pace::Next, times, number).await?;
            let floor = f64::midpoint(before, floor.run(bench, count, times).await?);
            rounds.push(Round { floor, value });
        }
        self.sites.splice(..0, streams.into_iter().map(Loaded::into_site));
        polling.iter().try_for_each(Polling::still)?;
        Ok(Figure::of_rounds(format!("{}, {busy} of them busy", self.name()), "1/s", &rounds))
    }

    /// A poll that waits at each Site but the first ones.
    async fn polling(&self, bench: &Bench, but: usize) -> Result<Vec<Polling>, Box<dyn Error>> {
        let mut polling = Vec::new();
        for site in &self.sites[but..] {
            polling.push(Polling::start(LinkedRuntime::at_the_end(bench, site).await?));
        }
        Ok(polling)
    }

    fn next_load(&mut self) -> u32 {
        self.load += 1;
        self.load
    }
}

const METHOD: &str = "\
So many Sites on one database, each with a `site-api` of its own. Idle: a Runtime's poll waits at each,
and nothing happens for 45 seconds, as for one listener above. Idle delivery: at one Site, while a poll
waits at each other one. Busy: the load one by one with `next=1`, on one Site or on ten, while a poll
waits at each other one; the floor has as many streams as Sites are busy.";
