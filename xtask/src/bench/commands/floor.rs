//! The floor of a throughput: what PostgreSQL itself gives for the same work by plain statements,
//! measured by its own `pgbench`, without HTTP, TLS to a Runtime or code of ours.

mod product;

use std::{
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use test_support::process::{Exit, LastSignal, Process};
use tokio_postgres::Client;

use super::{
    enqueuers::{BACKLOG, ENQUEUERS},
    load::Times,
};
use crate::bench::world::{Bench, DATABASE};

/// What our connections ask of the server: the floor has no plan that is worse.
pub(crate) const OPTIONS: &str =
    "-c jit=off -c plan_cache_mode=force_generic_plan -c enable_seqscan=off";
/// The plain tables.
pub(crate) const SCHEMA: &str = include_str!("floor/schema.sql");
/// How long a floor may take to start, to store and to end; it ends after its next statement.
const WITHIN: Duration = Duration::from_secs(60);

/// The statements of a floor, and the database that they run in.
pub(crate) struct Floor {
    name: String,
    database: Client,
    scripts: Scripts,
    /// Reads how many results all streams have.
    results: &'static str,
    run: u32,
}

/// What `pgbench` runs, in a folder.
struct Scripts {
    enqueue: PathBuf,
    result: PathBuf,
}

impl Floor {
    /// Plain statements on plain tables, in a database of this name.
    pub(crate) async fn plain(bench: &Bench, name: &str) -> Result<Self, Box<dyn Error>> {
        let database = bench.database(name, SCHEMA).await?;
        let enqueue = include_str!("floor/enqueue.pgbench");
        let scripts =
            Scripts::write(bench.folder(), name, enqueue, include_str!("floor/result.pgbench"))?;
        let results = "SELECT sum(done_seq)::bigint FROM progress";
        Ok(Self { name: name.to_owned(), database, scripts, results, run: 0 })
    }

    /// The product's own statements on its own tables, on one stream.
    pub(crate) async fn product(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        let database = bench.superuser().await?;
        database.batch_execute(product::OPEN).await?;
        let (enqueue, result) = product::scripts();
        let scripts = Scripts::write(bench.folder(), "product", &enqueue, &result)?;
        let (name, results) = (DATABASE.to_owned(), product::RESULTS);
        Ok(Self { name, database, scripts, results, run: 0 })
    }

    /// Results a second of all of some streams together, each with four connections that enqueue and
    /// one that stores results.
    pub(crate) async fn run(
        &mut self,
        bench: &Bench,
        streams: u32,
        times: Times,
    ) -> Result<f64, Box<dyn Error>> {
        self.run += 1;
        let enqueuing = self.start(bench, &self.scripts.enqueue, streams * ENQUEUERS)?;
        let storing = self.start(bench, &self.scripts.result, streams)?;
        let ended = || [&enqueuing, &storing].into_iter().any(|process| process.exit().is_some());
        let start = self.results().await?;
        self.until_after(start, ended).await;
        tokio::time::sleep(times.warm_up).await;
        let (begun, before) = (tokio::time::Instant::now(), self.results().await?);
        tokio::time::sleep(times.window).await;
        // On a machine that is too busy the window may hold nothing yet.
        self.until_after(before, ended).await;
        let (after, took) = (self.results().await?, begun.elapsed());
        for process in [enqueuing, storing] {
            if process.exit().is_some() {
                return Err(format!("pgbench ended early:\n{}", process.tail()).into());
            }
            process.signal(Signal::INT);
            if let Exit::Code(code @ 1..) = process.wait_exit(WITHIN).await? {
                return Err(format!("pgbench failed ({code}):\n{}", process.tail()).into());
            }
        }
        Ok((after - before) as f64 / took.as_secs_f64())
    }

    fn start(&self, bench: &Bench, script: &Path, clients: u32) -> io::Result<Process> {
        let access = bench.cluster().access();
        let program = access.installation.program("pgbench");
        if !program.is_file() {
            let missing = format!("{} is missing: the floors need it", program.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, missing));
        }
        let mut command = Command::new(program);
        command
            .args(["--no-vacuum", "--protocol=prepared", "--time=3600"])
            .arg(format!("--client={clients}"))
            .arg(format!("--file={}", script.display()));
        for (name, value) in self.variables() {
            command.arg(format!("--define={name}={value}"));
        }
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", access.port.to_string())
            .env("PGUSER", "postgres")
            .env("PGPASSWORD", &access.superuser_password)
            .env("PGDATABASE", &self.name)
            .env("PGSSLMODE", "verify-full")
            .env("PGSSLROOTCERT", &access.ca_file)
            .env("PGOPTIONS", OPTIONS);
        Process::start_ending_by(command, LastSignal::Kill)
    }

    fn variables(&self) -> [(&'static str, String); 9] {
        [
            ("run", self.run.to_string()),
            ("n", "0".to_owned()),
            ("known", "0".to_owned()),
            ("backlog", "0".to_owned()),
            ("enqueuers", ENQUEUERS.to_string()),
            ("most", BACKLOG.to_string()),
            ("digest", format!("\\x{}", "5a".repeat(32))),
            ("body", "#".repeat(1024)),
            ("result", "#".repeat(200)),
        ]
    }

    /// Waits for a result after so many, or for the end of `pgbench`.
    async fn until_after(&self, results: i64, ended: impl Fn() -> bool) {
        test_support::eventually(WITHIN, "the next result of a floor", async || {
            (ended() || self.results().await.ok()? > results).then_some(())
        })
        .await;
    }

    async fn results(&self) -> Result<i64, tokio_postgres::Error> {
        Ok(self.database.query_one(self.results, &[]).await?.get(0))
    }
}

impl Scripts {
    fn write(folder: &Path, name: &str, enqueue: &str, result: &str) -> io::Result<Self> {
        let scripts = Self {
            enqueue: folder.join(format!("{name}-enqueue.pgbench")),
            result: folder.join(format!("{name}-result.pgbench")),
        };
        fs::write(&scripts.enqueue, enqueue)?;
        fs::write(&scripts.result, result)?;
        Ok(scripts)
    }
}
