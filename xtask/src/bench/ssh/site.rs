//! A Site with keys in force: a database of its own, its `ssh-access` and its `site-api`.

use std::{
    error::Error,
    process::Command,
    time::{Duration, Instant},
};

use database::{Pool, Role};
use site_client::{Origin, SiteClient, Timeouts, TokenFile, roots_from_pem_file};
use test_support::{
    DatabaseUrls, Process, TestDatabase, TestSite, bin,
    process::{LastSignal, free_port},
};
use tokio::time::sleep;
use tokio_postgres::Client;

use crate::bench::world::{Bench, pool};

/// How long a program may take to say that it serves.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long it may take from the registry to the feed, for all keys.
const PROPAGATED_WITHIN: Duration = Duration::from_secs(1_800);

/// The file with the bearer of the Site's agent.
const BEARER: &str = "ssh-bearer";

/// A Site with so many keys in force. Everything ends with the value.
pub(super) struct SshSite {
    /// How many.
    pub(super) keys: u32,
    /// Its files and addresses.
    pub(super) files: TestSite,
    _listener: Process,
    _propagator: Process,
    // Dropped after those that are connected to it.
    pub(super) database: TestDatabase,
}

impl SshSite {
    /// Puts keys in force: the registry's tables are filled by SQL, and `ssh-access` brings them to the
    /// feed. Then the database tidies up: what it does some time after that is no cost of what comes.
    pub(super) async fn start(bench: &Bench, keys: u32) -> Result<Self, Box<dyn Error>> {
        let database = bench.copy().await;
        let files = set_up(bench, &database, &format!("bench-ssh-{keys}"))?;
        let sql = database.superuser().await;
        sql.batch_execute(&fill(&files.site, keys)).await?;
        let begun = Instant::now();
        let propagator = start_propagator(&files.site, &database)?;
        propagated(&sql, &propagator, &files.site, i64::from(keys)).await?;
        eprintln!("{keys} keys are in force, after {:.0?}", begun.elapsed());
        sql.batch_execute("VACUUM ANALYZE").await?;
        sql.batch_execute("CHECKPOINT").await?;
        let listener = start_listener(&files, &database).await?;
        Ok(Self { keys, files, _listener: listener, _propagator: propagator, database })
    }

    /// Another `site-api` of the Site, and where it is.
    pub(super) async fn another_listener(&self) -> Result<(Process, TestSite), Box<dyn Error>> {
        let files = self.files.another_listener()?;
        Ok((start_listener(&files, &self.database).await?, files))
    }

    /// A pool of a role of its database.
    pub(super) fn pool(&self, role: Role) -> Result<Pool, Box<dyn Error>> {
        pool(&self.database.url(role.name), 4)
    }

    /// A client with connections of its own, as the agent has one.
    pub(super) async fn client(&self) -> Result<SiteClient, Box<dyn Error>> {
        let roots = roots_from_pem_file(&self.files.file("tls/ca.crt"))?;
        let token = TokenFile::open(self.files.file(BEARER)).await?;
        let origin = Origin::parse(&self.files.origin())?;
        Ok(SiteClient::new(origin, roots, token, Timeouts::default()))
    }
}

/// The files of a Site in a database.
pub(super) fn set_up(
    bench: &Bench,
    database: &TestDatabase,
    name: &str,
) -> Result<TestSite, Box<dyn Error>> {
    let urls = DatabaseUrls {
        api: database.url("site_coordination_api"),
        producer: database.url("site_coordination_producer"),
    };
    let files = TestSite::set_up(&bench.folder().join(name), name, "slurm", urls)?;
    files.issue_bearer("ssh-access", BEARER)?;
    Ok(files)
}

/// Starts the process that brings keys to the feed of a Site.
pub(super) fn start_propagator(
    site: &str,
    database: &TestDatabase,
) -> Result<Process, Box<dyn Error>> {
    let mut command = Command::new(bin("ssh-access"));
    command
        .env("SSH_ACCESS_SITE", site)
        .env("SSH_ACCESS_DATABASE_URL", database.url(ssh_access::PROCESS_ROLE.name))
        .env("SSH_ACCESS_METRICS_LISTEN", format!("127.0.0.1:{}", free_port()?));
    Ok(Process::start_ending_by(command, LastSignal::Kill)?)
}

/// Waits until the feed of a Site has so many changes.
pub(super) async fn propagated(
    sql: &Client,
    propagator: &Process,
    site: &str,
    changes: i64,
) -> Result<(), Box<dyn Error>> {
    let by = Instant::now() + PROPAGATED_WITHIN;
    let head = "SELECT head FROM ssh_access.site_feed WHERE site = $1";
    loop {
        let row = sql.query_opt(head, &[&site]).await?;
        let head: i64 = row.map_or(0, |row| row.get(0));
        if head == changes {
            return Ok(());
        }
        if head > changes || propagator.exit().is_some() || Instant::now() > by {
            let tail = propagator.tail();
            return Err(format!("{head} changes where {changes} should be:\n{tail}").into());
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn start_listener(
    files: &TestSite,
    database: &TestDatabase,
) -> Result<Process, Box<dyn Error>> {
    let mut command = files.site_api_command();
    command
        .env("SSH_ACCESS_SITE", &files.site)
        .env("SSH_ACCESS_DATABASE_URL", database.url(ssh_access::API_ROLE.name));
    let listener = Process::start_ending_by(command, LastSignal::Kill)?;
    let listens = |line: &str| line.contains("\"site_api.listening\"");
    listener.wait_for_line("that it listens", READY_WITHIN, listens).await?;
    Ok(listener)
}

/// So many members with a key and a user each, as the registry would have stored them.
fn fill(site: &str, keys: u32) -> String {
    include_str!("fill.sql")
        .replace(":site", &format!("'{site}'"))
        .replace(":keys", &keys.to_string())
}
