//! What one call costs when nothing else goes on: beside a commit and a round trip, and beside a bare
//! server.

mod bare;

use std::{
    error::Error,
    time::{Duration, Instant},
};

use site_client::{
    Origin, PollRequest, SiteClient, Timeouts, TokenFile, Writer, roots_from_pem_file,
};
use site_coordination::{Environment, Producer};
use tokio_postgres::{Client, Statement};

use self::bare::{BareServer, RoundTrip};
use super::{enqueuers::command, floor::SCHEMA, linked::LinkedRuntime, notify::connect};
use crate::bench::{
    figure::{Figure, Part, Round, quantile},
    world::{Bench, BenchSite},
};

const DATABASE: &str = "floor_commit";
/// A result stored as plainly as it can be: compare-and-set, insert, commit.
const STORE: &str = "
    WITH moved AS (
        UPDATE progress SET done_seq = done_seq + 1 WHERE stream = 1 AND done_seq = $1
        RETURNING done_seq
    )
    INSERT INTO result (stream, seq, digest, body)
    SELECT 1, done_seq, decode(repeat('5a', 32), 'hex'), repeat('#', 200) FROM moved";

struct Size {
    turns: usize,
    results: u32,
    polling: Duration,
}

pub(crate) async fn measure(bench: &Bench) -> Result<Part, Box<dyn Error>> {
    let size = if bench.quick {
        Size { turns: 1, results: 5, polling: Duration::from_millis(100) }
    } else {
        Size { turns: 5, results: 200, polling: Duration::from_secs(1) }
    };
    let mut commits = Commits::new(bench).await?;
    let mut alone = Alone::new(bench).await?;
    let server = BareServer::start(bench).await?;
    let bare = client(&server.origin(), &server.ca_file(), &alone.site).await?;
    let ours = alone.site.client().await?;

    let (mut stored, mut polls) = (Vec::new(), Vec::new());
    for _ in 0..size.turns {
        let floor = quantile(&commits.turn(size.results).await?, 0.5);
        let value = quantile(&alone.turn(size.results).await?, 0.5);
        stored.push(Round { floor, value });
        let floor = polls_a_second(&bare, size.polling).await?;
        let value = polls_a_second(&ours, size.polling).await?;
        polls.push(Round { floor, value });
    }
    Ok(Part {
        title: "One call alone",
        method: METHOD.to_owned(),
        figures: vec![
            Figure::of_rounds("a result stored by HTTPS, p50", "ms", &stored),
            Figure::of_rounds("polls that find nothing, one after the other", "1/s", &polls),
        ],
    })
}

async fn client(
    origin: &str,
    ca_file: &std::path::Path,
    site: &BenchSite,
) -> Result<SiteClient, Box<dyn Error>> {
    let token = TokenFile::open(site.site.file("bearer")).await?;
    let roots = roots_from_pem_file(ca_file)?;
    Ok(SiteClient::new(Origin::parse(origin)?, roots, token, Timeouts::default()))
}

/// Polls for cancels alone, of which there are none, on one connection, for a while.
async fn polls_a_second(client: &SiteClient, polling: Duration) -> Result<f64, Box<dyn Error>> {
    let request = PollRequest {
        writer: Writer::FIRST,
        after: 0,
        after_digest: None,
        cancel_rev: 0,
        limit: 0,
        wait: Duration::ZERO,
    };
    client.poll(&request).await?;
    let (begun, mut count) = (Instant::now(), 0_u32);
    while begun.elapsed() < polling {
        client.poll(&request).await?;
        count += 1;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}

/// The floor of a stored result: a commit, then a round trip by TLS.
struct Commits {
    database: Client,
    store: Statement,
    network: RoundTrip,
    done: i64,
}

impl Commits {
    async fn new(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        bench.database(DATABASE, SCHEMA).await?;
        let database = connect(bench, DATABASE, None).await?;
        let store = database.prepare(STORE).await?;
        Ok(Self { database, store, network: RoundTrip::start(bench).await?, done: 0 })
    }

    async fn turn(&mut self, results: u32) -> Result<Vec<f64>, Box<dyn Error>> {
        let mut took = Vec::new();
        for _ in 0..results {
            let begun = Instant::now();
            if self.database.execute(&self.store, &[&self.done]).await? != 1 {
                return Err("void: the floor stored nothing".into());
            }
            self.network.once().await?;
            took.push(begun.elapsed().as_secs_f64() * 1000.0);
            self.done += 1;
        }
        Ok(took)
    }
}

/// A Site on which nothing happens but one Runtime's results.
struct Alone {
    site: BenchSite,
    producer: Producer,
    runtime: LinkedRuntime,
    turns: u32,
}

impl Alone {
    async fn new(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        let site = bench.site("bench-alone", Environment::Slurm).await?;
        let runtime = LinkedRuntime::new(site.client().await?);
        Ok(Self { site, producer: bench.producer()?, runtime, turns: 0 })
    }

    async fn turn(&mut self, results: u32) -> Result<Vec<f64>, Box<dyn Error>> {
        self.turns += 1;
        let commands = (0..results).map(|number| command(self.turns, 0, number)).collect();
        self.producer.enqueue_many(&self.site.stream, commands).await?;
        let mut took = Vec::new();
        for number in 0..results {
            if number % 64 == 0 {
                let page = self.runtime.poll(64).await?;
                self.runtime.read(page);
            }
            let begun = Instant::now();
            self.runtime.store_one(None).await?;
            took.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(took)
    }
}

const METHOD: &str = "\
A result: the time of one `PUT` by `site-client` while nobody enqueues; its floor is one commit (a plain
compare-and-set and insert by the driver over verified TLS) and then one round trip of as many bytes over
another TLS connection. Polls: one after the other by `site-client`, each authenticated and answered from
the database; their floor is a bare server of hyper and tokio-rustls in a thread of this process that
answers every request with the same page.";
