//! What commands that are over cost those that come: the same on a stream with none before, with a
//! hundred thousand, and with a million.

use std::{error::Error, time::Instant};

use site_coordination::Environment;
use tokio_postgres::Client;

use super::{
    floor::Floor,
    idle_latency::Https,
    linked::Pace,
    load::{self, Loaded, Times},
};
use crate::bench::{
    figure::{Figure, Part, Round, Target, median, quantile},
    world::{Bench, BenchSite},
};

/// What is measured.
const LOADS: [(&str, Pace); 2] =
    [("one by one, next=1", Pace::Next), ("batches of 64", Pace::Batches(64))];
/// What counts as no cost: two runs of one thing differ by as much.
const SAME: f64 = 0.95;
const SAME_TIME: f64 = 1.05;

/// Deliveries, and the load whose keys they have.
const DELIVERIES: u32 = 300;
const OF_DELIVERIES: u32 = 1_000_000;

/// A stream with so many commands before.
struct Level {
    commands: u32,
    /// For each load.
    rounds: [Vec<Round>; 2],
    deliveries: Vec<f64>,
}

pub(crate) async fn measure(bench: &Bench) -> Result<Part, Box<dyn Error>> {
    bench.empty().await?;
    let mut floor = Floor::plain(bench, "floor_history").await?;
    let histories: &[u32] = if bench.quick { &[0, 2_000] } else { &[0, 100_000, 1_000_000] };
    let mut levels = Vec::new();
    for commands in histories {
        levels.push(Level::measure(bench, &mut floor, *commands).await?);
    }
    let mut figures = Vec::new();
    for level in &levels {
        figures.extend(level.figures(&levels[0]));
    }
    Ok(Part { title: "The cost of a history", method: METHOD.to_owned(), figures })
}

impl Level {
    async fn measure(
        bench: &Bench,
        floor: &mut Floor,
        commands: u32,
    ) -> Result<Self, Box<dyn Error>> {
        let name = format!("bench-history-{commands}");
        let site = bench.site(&name, Environment::Slurm).await?;
        fill(&bench.superuser().await?, &site, commands).await?;

        let mut https = Https::new(bench, site, OF_DELIVERIES).await?;
        https.turn(10).await?;
        let (deliveries, _) = https.turn(if bench.quick { 5 } else { DELIVERIES }).await?;

        let mut streams = vec![Loaded::new(bench, https.into_site(), &bench.producer()?).await?];
        let mut rounds = [const { Vec::new() }; 2];
        let times = Times::of(bench);
        let mut number = 0;
        for _ in 0..if bench.quick { 1 } else { 2 } {
            let before = floor.run(bench, 1, times).await?;
            let mut values = [0.0; 2];
            for ((_, pace), value) in LOADS.iter().zip(&mut values) {
                number += 1;
                *value = load::run(bench, &mut streams, *pace, times, number).await?;
            }
            let floor = f64::midpoint(before, floor.run(bench, 1, times).await?);
            for (rounds, value) in rounds.iter_mut().zip(values) {
                rounds.push(Round { floor, value });
            }
        }
        Ok(Self { commands, rounds, deliveries })
    }

    fn figures(&self, none: &Self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (index, (name, _)) in LOADS.iter().enumerate() {
            let name = format!("{} commands before, {name}", self.commands);
            figures.push(Figure::of_rounds(name.clone(), "1/s", &self.rounds[index]));
            // A short run may have measured nothing.
            if self.commands > none.commands && median_ratio(&none.rounds[index]) > 0.0 {
                let of = |level: &Self| median_ratio(&level.rounds[index]);
                let beside = Figure::beside(format!("{name}: ÷ floor"), of(self), "", of(none));
                figures.push(beside.aiming_at(Target::AtLeast(SAME)));
            }
        }
        let name = format!("{} commands before, idle delivery p50", self.commands);
        let delivery = |level: &Self| quantile(&level.deliveries, 0.5);
        figures.push(if self.commands > none.commands {
            let beside = Figure::beside(name, delivery(self), "ms", delivery(none));
            beside.aiming_at(Target::AtMost(SAME_TIME))
        } else {
            Figure::alone(name, delivery(self), "ms")
        });
        figures
    }
}

fn median_ratio(rounds: &[Round]) -> f64 {
    median(&rounds.iter().map(|round| round.value / round.floor).collect::<Vec<_>>())
}

/// Gives a stream a history as enqueues and results would have left it, and has the database tidy up:
/// what it does some time after a million inserts is no cost of what comes.
async fn fill(
    database: &Client,
    site: &BenchSite,
    commands: u32,
) -> Result<(), tokio_postgres::Error> {
    let begun = Instant::now();
    let sql = include_str!("history/fill.sql")
        .replace(":site", &format!("'{}'", site.stream.site.as_str()))
        .replace(":environment", &format!("'{}'", site.stream.environment.as_str()))
        .replace(":commands", &commands.to_string());
    database.batch_execute(&sql).await?;
    database.batch_execute("VACUUM ANALYZE").await?;
    database.batch_execute("CHECKPOINT").await?;
    eprintln!("{commands} commands of history, in {:.0?}", begun.elapsed());
    Ok(())
}

const METHOD: &str = "\
The same stream loads as above, on streams that begin with so many answered commands, each with a body of
1 KiB and a result of 200 bytes. The history is written by SQL with a chain that holds, ids in no order,
and the progress at its end; then `VACUUM ANALYZE` and `CHECKPOINT`. The database holds nothing else but
the shorter histories. The loads stand beside the floor of plain tables without a history, in turns. The
lines `÷ floor` hold the ratio with a history against that without one: 1 is no cost. An idle delivery is
held against that without a history itself.";
