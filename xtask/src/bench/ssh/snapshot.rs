//! Everything that is in force, from the database into the files of a new agent.

use std::{
    error::Error,
    fs,
    time::{Duration, Instant},
};

use super::{
    Sites,
    agent::{Agent, Folders, check},
    copy, files, grouped,
    site::SshSite,
};
use crate::bench::{
    figure::{Figure, Part, Round, Target, median},
    world::Bench,
};

/// Of the floor, below which something of ours is slow.
const SHARE: f64 = 0.5;

/// What one round measures.
struct Measured {
    copy: Duration,
    read: Duration,
    applied: Duration,
    attested: Duration,
    /// With every file there already.
    again: Duration,
    durably: Duration,
    plainly: Duration,
}

pub(super) async fn measure(sites: &mut Sites<'_>) -> Result<Part, Box<dyn Error>> {
    let (bench, keys) = (sites.bench, sites.keys);
    let site = sites.with(keys).await?;
    let mut rounds = Vec::new();
    for round in 0..if bench.quick { 1 } else { 5 } {
        let measured = Measured::of(bench, site, round).await?;
        eprintln!(
            "round {round}: COPY {:.2?}, read {:.2?}; files {:.2?}, plainly {:.2?}; applied {:.2?}, \
             attested {:.2?}; again {:.2?}",
            measured.copy,
            measured.read,
            measured.durably,
            measured.plainly,
            measured.applied,
            measured.attested,
            measured.again
        );
        rounds.push(measured);
    }
    Ok(Part { title: "A snapshot", method: METHOD.to_owned(), figures: figures(keys, &rounds) })
}

fn figures(keys: u32, rounds: &[Measured]) -> Vec<Figure> {
    let rate = |took: Duration| f64::from(keys) / took.as_secs_f64();
    let of = |value: fn(&Measured) -> Duration, floor: fn(&Measured) -> Duration| {
        let round = |one: &Measured| Round { floor: rate(floor(one)), value: rate(value(one)) };
        rounds.iter().map(round).collect::<Vec<_>>()
    };
    let seconds = |of: fn(&Measured) -> Duration| {
        median(&rounds.iter().map(|one| of(one).as_secs_f64()).collect::<Vec<_>>())
    };
    let keys = format!("{} keys", grouped(keys));
    let applied = of(|one| one.applied, |one| one.copy + one.durably);
    let read = of(|one| one.read, |one| one.copy);
    let plainly = of(|one| one.applied, |one| one.copy + one.plainly);
    let durably = of(|one| one.durably, |one| one.plainly);
    let again = of(|one| one.again, |one| one.copy);
    vec![
        Figure::of_rounds(format!("{keys} into new files, keys"), "1/s", &applied)
            .aiming_at(Target::AtLeast(SHARE)),
        Figure::of_rounds("the same beside files that are not durable", "1/s", &plainly),
        Figure::of_rounds("the stream alone, beside COPY, keys", "1/s", &read)
            .aiming_at(Target::AtLeast(SHARE)),
        Figure::of_rounds("the floor's durable files beside its plain ones", "1/s", &durably),
        Figure::of_rounds("every file right already, beside COPY, keys", "1/s", &again),
        Figure::alone(format!("{keys} until they are durable"), seconds(|one| one.applied), "s"),
        Figure::alone(format!("{keys} until they are attested"), seconds(|one| one.attested), "s"),
    ]
}

impl Measured {
    /// A floor, the product, the other floor.
    async fn of(bench: &Bench, site: &SshSite, round: u32) -> Result<Self, Box<dyn Error>> {
        let (copy, rows) = copy::rows(bench, site).await?;
        let read = read(site).await?;
        let folders = Folders::new(bench.folder(), &format!("snapshot-{round}"))?;
        let agent = Agent::start(&site.files, &folders)?;
        let (applied, attested) = (agent.applied().await?, agent.attested().await?);
        drop(agent);
        let written = folders.read()?;
        check(&written, &rows)?;

        folders.forget()?;
        let agent = Agent::start(&site.files, &folders)?;
        let again = agent.applied().await?;
        agent.attested().await?;
        drop(agent);
        check(&folders.read()?, &rows)?;
        folders.remove()?;

        let folder = bench.folder().join("floor");
        let durably = files::durably(&folder, &written)?;
        fs::remove_dir_all(&folder)?;
        let plainly = files::plainly(&folder, &written)?;
        fs::remove_dir_all(&folder)?;
        Ok(Self { copy, read, applied, attested, again, durably, plainly })
    }
}

/// Reads a snapshot with the agent's client and keeps nothing of it.
async fn read(site: &SshSite) -> Result<Duration, Box<dyn Error>> {
    let client = site.client().await?;
    let begun = Instant::now();
    let mut snapshot = client.ssh_snapshot().await?;
    let mut count = 0;
    while snapshot.next().await?.is_some() {
        count += 1;
    }
    let took = begun.elapsed();
    if count == site.keys { Ok(took) } else { Err(format!("void: {count} keys came").into()) }
}

const METHOD: &str = "\
A new `site-agent ssh-keys`, without a state and on an empty folder, takes a snapshot from `site-api` and
writes a file for each user: from the start of its process until it logs that everything is durable and
its place kept, and until it logs that `site-api` found the files, read back, to be what is in force.

The floor is the time of two things one after the other: `COPY` of the same rows, with the same columns
and in the same order, out of PostgreSQL over verified TLS into the memory of one process; and the writing
of the same files, byte by byte, by plain calls in another folder of the same disk. As durable means: 256
files at a time, each created under another name and written, one `syncfs`, one `fsync` for each file, the
renames, one `fsync` of the folder. The agent makes the same calls, and besides it looks at each place
before and after, and gives each file its rights. The plain files are written in their places and nothing
makes them durable. The floor parses no key, has no HTTP, and its order is that of its list.

The stream alone is read by the agent's own client, which checks each line and keeps none. With every
file right already the agent reads each and writes none: what follows a lost state or a feed that was
compacted.";
