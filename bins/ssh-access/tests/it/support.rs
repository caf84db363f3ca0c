//! A database with members, and the process of a Site.

use std::{net::SocketAddr, process::Command, time::Duration};

use database::{Pool, PoolLimits};
use ring::rand::SystemRandom;
use ssh_access::{
    API_ROLE, Acknowledgement, Cursor, Failures, Feed, KeyId, MemberId, NewKey, PublicKey,
    REGISTRY_ROLE, Registry, SiteId, UnixUser, Wakeups, Window,
};
use test_support::{Process, TestDatabase, bin, eventually};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Longer than anything takes on a machine that does something else as well.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const DATABASE: &str = "SSH_ACCESS_DATABASE_URL";

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";

/// A running process.
pub(crate) struct Running {
    pub(crate) process: Process,
    /// Where its metrics, alarms and health are.
    pub(crate) admin: SocketAddr,
}

/// The process with what it needs, for the Site `north-1`.
pub(crate) fn command(database: &TestDatabase) -> Command {
    let mut command = Command::new(bin("ssh-access"));
    command
        .env(DATABASE, database.url("ssh_access_process"))
        .env("SSH_ACCESS_SITE", "north-1")
        .env("SSH_ACCESS_LEASE_SECONDS", "3")
        .env("SSH_ACCESS_METRICS_LISTEN", "127.0.0.1:0");
    command
}

impl Running {
    pub(crate) async fn start(command: Command) -> Self {
        let process = Process::start(command).unwrap();
        let line = process
            .wait_for_line("that it runs", LONG, |line| line.contains("\"ssh_access.started\""))
            .await
            .unwrap();
        let (_, rest) = line.split_once("\"ssh_access.metrics_listen\":\"").unwrap();
        let admin = rest.split('"').next().unwrap().parse().unwrap();
        Self { process, admin }
    }

    /// Waits until it says this.
    pub(crate) async fn says(&self, event: &str) {
        let event = format!("\"{event}\"");
        self.process.wait_for_line(&event, LONG, |line| line.contains(&event)).await.unwrap();
    }

    /// The answer to a request without TLS, whole.
    pub(crate) async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.admin).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// The value of a metric of the Site.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.get("/metrics").await;
        let name = format!("{name}{{site=\"north-1\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok())
    }
}

pub(crate) fn pool(database: &TestDatabase, role: &str) -> Pool {
    let limits = PoolLimits { wait: LONG, statement: LONG, ..PoolLimits::default() };
    Pool::new(&database.url(role).parse().unwrap(), "test", limits)
}

pub(crate) fn registry(database: &TestDatabase) -> Registry {
    Registry::new(pool(database, REGISTRY_ROLE.name))
}

pub(crate) fn feed(database: &TestDatabase) -> Feed {
    let wakeups = Wakeups::new(SiteId::parse("north-1").unwrap());
    Feed::new(pool(database, API_ROLE.name), wakeups, Window::DEFAULT)
}

/// Waits until so many keys are in force.
pub(crate) async fn wait_for_keys(database: &TestDatabase, count: usize) {
    eventually(LONG, "the keys to be in force", async || {
        (in_force(database).await == count).then_some(())
    })
    .await;
}

/// The agent of the Site says that it has everything.
pub(crate) async fn acknowledge_all(database: &TestDatabase) {
    let feed = feed(database);
    let page = feed.changes(Cursor::START, 10, Duration::ZERO, std::future::pending()).await;
    let cursor = page.unwrap().head;
    let acknowledgement = Acknowledgement {
        cursor,
        chain_digest: cursor.digest(),
        set_digest: None,
        failures: Failures::default(),
    };
    feed.acknowledge(&acknowledgement).await.unwrap();
}

/// Lets the time of every removal be over.
pub(crate) async fn let_time_pass(database: &TestDatabase) {
    let past = "UPDATE ssh_access.site_change SET enforce_by = clock_timestamp()
                 WHERE operation = 'remove'";
    database.superuser().await.batch_execute(past).await.unwrap();
}

/// Gives a new member a key and a user of the Site.
#[expect(clippy::disallowed_methods, reason = "a test makes its own")]
pub(crate) async fn member(database: &TestDatabase, name: &str) -> KeyId {
    let registry = registry(database);
    let member = MemberId::parse(name).unwrap();
    let key = PublicKey::parse(KEY).unwrap();
    let new = NewKey { member: member.clone(), key, end: None };
    let added = registry.add_key(&new, &SystemRandom::new()).await.unwrap();
    let (site, user) = (SiteId::parse("north-1").unwrap(), UnixUser::parse(name).unwrap());
    registry.add_account(&site, &member, &user).await.unwrap();
    added.value.id
}

/// How many keys are in force.
pub(crate) async fn in_force(database: &TestDatabase) -> usize {
    let mut snapshot = feed(database).snapshot().await.unwrap();
    let mut keys = 0;
    while let Some(part) = snapshot.next().await.unwrap() {
        keys += part.len();
    }
    keys
}
