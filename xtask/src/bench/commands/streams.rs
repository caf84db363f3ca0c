//! Results a second: on one stream and on two, at batches of 1, 16 and 64, and of ten Sites at once.
//! Each beside the floor of as many streams, in turns.

use std::error::Error;

use site_coordination::Environment;

use super::{
    floor::Floor,
    linked::Pace,
    load::{self, Loaded, Times},
};
use crate::bench::{
    figure::{Figure, Part, Round, Target},
    world::Bench,
};

/// How often everything has its turn.
const ROUNDS: u32 = 3;

/// One by one, in the two ways that a Runtime has: the better one is the figure.
const ONE_BY_ONE: [(&str, Pace); 2] =
    [("pages of 64, a PUT each", Pace::Pages), ("a PUT each with next=1", Pace::Next)];
/// In batches.
const BATCHES: [(&str, Pace); 2] =
    [("batches of 16", Pace::Batches(16)), ("batches of 64", Pace::Batches(64))];

/// One stream and two.
pub(crate) async fn measure_streams(bench: &Bench) -> Result<Part, Box<dyn Error>> {
    let mut floor = Floor::plain(bench, "floor_streams").await?;
    let mut one = Group::new(bench, "1 stream", &["bench-1"], &[ONE_BY_ONE, BATCHES]).await?;
    let mut two =
        Group::new(bench, "2 streams", &["bench-2", "bench-3"], &[ONE_BY_ONE, BATCHES]).await?;
    let mut product = Floor::product(bench).await?;
    let mut ours = Vec::new();
    for _ in 0..rounds(bench) {
        one.round(bench, &mut floor).await?;
        ours.push(Round {
            value: product.run(bench, 1, Times::of(bench)).await?,
            floor: one.last_floor(),
        });
        two.round(bench, &mut floor).await?;
    }
    let figures = [
        one.better_of_the_first(Some(Target::AtLeast(0.6))),
        vec![Figure::of_rounds("1 stream, the product's SQL by pgbench", "1/s", &ours)],
        one.others(&[None, Some(Target::AtLeast(5.0))]),
        two.better_of_the_first(None),
        two.others(&[None, None]),
    ];
    Ok(Part { title: "Throughput", method: METHOD.to_owned(), figures: figures.concat() })
}

/// Ten Sites on one database, each with its own listener.
pub(crate) async fn measure_sites(bench: &Bench) -> Result<Part, Box<dyn Error>> {
    let mut floor = Floor::plain(bench, "floor_sites").await?;
    let sites = if bench.quick { 2 } else { 10 };
    let names: Vec<String> = (1..=sites).map(|number| format!("bench-many-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut many = Group::new(bench, &format!("{sites} Sites"), &names, &[ONE_BY_ONE]).await?;
    for _ in 0..rounds(bench) {
        many.round(bench, &mut floor).await?;
    }
    Ok(Part {
        title: "Ten Sites",
        method: METHOD_OF_SITES.to_owned(),
        figures: many.better_of_the_first(Some(Target::AtLeast(0.6))),
    })
}

fn rounds(bench: &Bench) -> u32 {
    if bench.quick { 1 } else { ROUNDS }
}

/// Some streams, and what is measured on them between floors: two loads between one floor and the
/// next.
struct Group {
    name: String,
    streams: Vec<Loaded>,
    pairs: Vec<[Measured; 2]>,
    loads: u32,
}

struct Measured {
    name: String,
    pace: Pace,
    rounds: Vec<Round>,
}

impl Group {
    async fn new(
        bench: &Bench,
        name: &str,
        sites: &[&str],
        pairs: &[[(&str, Pace); 2]],
    ) -> Result<Self, Box<dyn Error>> {
        let producer = bench.producer_of(sites.len())?;
        let mut streams = Vec::new();
        for site in sites {
            let site = bench.site(site, Environment::Slurm).await?;
            streams.push(Loaded::new(bench, site, &producer).await?);
        }
        let measured = |(how, pace): (&str, Pace)| Measured {
            name: format!("{name}, {how}"),
            pace,
            rounds: Vec::new(),
        };
        let pairs = pairs.iter().map(|pair| pair.map(measured)).collect();
        Ok(Self { name: name.to_owned(), streams, pairs, loads: 0 })
    }

    /// A floor, two loads, a floor, two loads, a floor …
    async fn round(&mut self, bench: &Bench, floor: &mut Floor) -> Result<(), Box<dyn Error>> {
        let times = Times::of(bench);
        let streams = u32::try_from(self.streams.len())?;
        let mut before = floor.run(bench, streams, times).await?;
        for pair in &mut self.pairs {
            let mut values = [0.0; 2];
            for (measured, value) in pair.iter().zip(&mut values) {
                self.loads += 1;
                *value = load::run(bench, &mut self.streams, measured.pace, times, self.loads)
                    .await
                    .map_err(|error| format!("{}: {error}", measured.name))?;
            }
            let after = floor.run(bench, streams, times).await?;
            let floor = f64::midpoint(before, after);
            for (measured, value) in pair.iter_mut().zip(values) {
                measured.rounds.push(Round { floor, value });
            }
            eprintln!(
                "{}: floor {floor:.0}/s, then {:.0}/s and {:.0}/s",
                self.name, values[0], values[1]
            );
            before = after;
        }
        Ok(())
    }

    /// The floor of the last loads.
    fn last_floor(&self) -> f64 {
        let last = self.pairs.last().and_then(|pair| pair[0].rounds.last());
        last.map_or(f64::NAN, |round| round.floor)
    }

    /// The two ways of the first pair, the better one first and with the target.
    fn better_of_the_first(&self, target: Option<Target>) -> Vec<Figure> {
        let mut figures: Vec<Figure> = self.pairs[0].iter().map(Measured::figure).collect();
        figures.sort_by(|one, other| {
            let ratio = |figure: &Figure| figure.ratio.unwrap_or_default();
            ratio(other).total_cmp(&ratio(one))
        });
        figures[0].target = target;
        figures
    }

    /// The loads of the other pairs, each with its target.
    fn others(&self, targets: &[Option<Target>]) -> Vec<Figure> {
        let measured = self.pairs[1..].iter().flatten();
        let figure = |(one, target): (&Measured, &Option<Target>)| Figure {
            target: *target,
            ..one.figure()
        };
        measured.zip(targets).map(figure).collect()
    }
}

impl Measured {
    fn figure(&self) -> Figure {
        Figure::of_rounds(self.name.as_str(), "1/s", &self.rounds)
    }
}

const METHOD: &str = "\
Results a second in a steady state. On each stream four callers of one `Producer`, each with a
connection, enqueue commands of 1 KiB, and one Runtime, by `site-client` over one HTTPS connection that
is kept alive, stores results of 200 bytes. A stream has at most 128 commands without a result, or eight
batches; whoever would enqueue more waits, so that as many are enqueued as are answered. One by one
means that a result is durable and its receipt in hand before the next result is sent. It is measured in
both ways that a Runtime has; the better one stands first and has the target. Batches are `enqueue_many`
on one side and `PUT results` with `next` on the other. Two streams are two Sites with a listener each.

The floor is `pgbench` with prepared statements over verified TLS on as many streams of plain tables: on
each stream four connections that enqueue (key lookup, head with chain digest, insert, in one statement)
and one that stores results (compare-and-set of the progress and insert, in one statement), the same
bytes, the same bound on the backlog. It has no HTTP, no TLS to a Runtime, no delivery: its consumer
knows the next command without reading it.

Beside it stand the product's own statements, run by `pgbench` in the same way on the product's tables,
one by one and without pages, with a lookup of the next command's id that a Runtime has from its page:
the distance from the floor to them is what our SQL and our tables cost, the distance from them to the
figure what HTTP, TLS, delivery and our code cost.";

const METHOD_OF_SITES: &str = "\
The same on ten Sites at once, each with its own `site-api` and its own Runtime, and one producer for all
with four connections for each; the floor has ten streams.";
