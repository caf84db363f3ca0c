//! A database a test and short ways to say what the tests are about.

use std::{future::pending, time::Duration};

use database::{DatabaseUrl, Pool, PoolLimits};
use ring::digest::{SHA256, digest};
use site_coordination::{
    API_ROLE, CommandId, CommandKind, Digest, Environment, Generation, JsonText, NewCommand,
    NewResult, OpenedSession, Outcome, PRODUCER_ROLE, Page, PollError, PollRequest, Producer,
    ProducerKey, Receipt, RunId, RuntimeSide, Seq, SessionId, SiteId, StoreResultError, Stored,
    Stream, Wakeups, Writer,
};
use test_support::TestDatabase;
use tokio_postgres::Client;

pub(crate) use test_support::at_once;

/// Longer than anything takes on a machine that does something else as well.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const SLURM: Environment = Environment::Slurm;
pub(crate) const SITE: &str = "north-1";

/// A migrated database.
pub(crate) struct Fixture {
    pub(crate) database: TestDatabase,
}

impl Fixture {
    pub(crate) async fn create() -> Self {
        Self { database: TestDatabase::create().await }
    }

    /// A pool of one of the context's roles.
    pub(crate) fn pool(&self, role: &str, connections: usize) -> Pool {
        let limits =
            PoolLimits { connections, wait: LONG, statement: LONG, ..PoolLimits::default() };
        Pool::new(&self.url(role), "test", limits)
    }

    pub(crate) fn url(&self, role: &str) -> DatabaseUrl {
        self.database.url(role).parse().unwrap()
    }

    pub(crate) fn api_pool(&self, connections: usize) -> Pool {
        self.pool(API_ROLE.name, connections)
    }

    pub(crate) fn producer(&self, connections: usize) -> Producer {
        Producer::new(self.pool(PRODUCER_ROLE.name, connections))
    }

    /// The Runtimes' side of a Site. Nothing feeds its wake-ups.
    pub(crate) fn runtime_of(&self, site: &str, connections: usize) -> RuntimeSide {
        RuntimeSide::new(self.api_pool(connections), Wakeups::new(SiteId::parse(site).unwrap()))
    }

    /// With one connection: a hint that opens another when the test ends keeps its database from
    /// being dropped for a minute.
    pub(crate) fn runtime(&self) -> RuntimeSide {
        self.runtime_of(SITE, 1)
    }

    /// A superuser's connection, to break what no role of the context may.
    pub(crate) async fn sql(&self) -> Client {
        self.database.superuser().await
    }

    /// Enqueues commands `k1`, `k2`, … and returns their ids.
    pub(crate) async fn filled(&self, commands: usize) -> Vec<CommandId> {
        let producer = self.producer(1);
        let mut ids = Vec::new();
        for chunk in commands_named("k", commands).chunks(Producer::MOST_AT_ONCE) {
            let enqueued = producer.enqueue_many(&slurm(), chunk.to_vec()).await.unwrap();
            ids.extend(enqueued.into_iter().map(|command| command.id));
        }
        ids
    }
}

pub(crate) fn stream(site: &str, environment: Environment) -> Stream {
    Stream { site: SiteId::parse(site).unwrap(), environment }
}

/// The stream of most tests.
pub(crate) fn slurm() -> Stream {
    stream(SITE, SLURM)
}

pub(crate) fn json(text: &str) -> JsonText {
    JsonText::parse(text).unwrap()
}

/// A command with a small body that names its key.
pub(crate) fn command(key: &str) -> NewCommand {
    command_with(key, &format!(r#"{{"for": "{key}"}}"#))
}

pub(crate) fn command_with(key: &str, body: &str) -> NewCommand {
    NewCommand {
        key: ProducerKey::parse(key).unwrap(),
        kind: CommandKind::parse("job.submit").unwrap(),
        run_id: Some(RunId::parse("run-1").unwrap()),
        not_after: None,
        body: json(body),
    }
}

/// Commands with the keys `{prefix}1` to `{prefix}{count}`.
pub(crate) fn commands_named(prefix: &str, count: usize) -> Vec<NewCommand> {
    (1..=count).map(|n| command(&format!("{prefix}{n}"))).collect()
}

pub(crate) fn seq(number: i64) -> Seq {
    Seq::parse(&number.to_string()).unwrap()
}

pub(crate) fn generation(number: i64) -> Generation {
    Generation::parse(&number.to_string()).unwrap()
}

/// The session of a generation above 1, as [`taken_over`] opens it.
pub(crate) fn session(number: i64) -> SessionId {
    SessionId::parse(&format!("session-of-generation-{number}")).unwrap()
}

/// The writer of a generation.
pub(crate) fn writer(number: i64) -> Writer {
    Writer::new(generation(number), (number > 1).then(|| session(number))).unwrap()
}

/// Opens the session of generation `number` in the stream of most tests.
pub(crate) async fn taken_over(runtime: &RuntimeSide, number: i64) -> OpenedSession {
    let opened = runtime.open_session(SLURM, session(number), generation(number - 1)).await;
    let (opened, _) = opened.unwrap();
    assert_eq!(opened.writer(), writer(number));
    opened
}

/// A question without a wait and with wide limits.
pub(crate) fn after(number: i64) -> PollRequest {
    PollRequest {
        writer: Writer::FIRST,
        after: seq(number),
        after_digest: None,
        cancel_rev: 0,
        limit: 1000,
        bytes: u32::MAX,
        wait: Duration::ZERO,
    }
}

/// A poll that nobody releases.
pub(crate) async fn poll(runtime: &RuntimeSide, request: PollRequest) -> Result<Page, PollError> {
    runtime.poll(SLURM, request, pending()).await
}

/// Stores a result of the first generation in the stream of most tests.
pub(crate) async fn store(
    runtime: &RuntimeSide,
    id: &CommandId,
    body: &str,
) -> Result<(Receipt, Stored), StoreResultError> {
    store_as(runtime, &Writer::FIRST, id, body).await
}

/// The same of another writer.
pub(crate) async fn store_as(
    runtime: &RuntimeSide,
    writer: &Writer,
    id: &CommandId,
    body: &str,
) -> Result<(Receipt, Stored), StoreResultError> {
    runtime.store_result(SLURM, writer, result(id, body)).await
}

/// Stores results in the stream of most tests.
pub(crate) async fn batch(
    runtime: &RuntimeSide,
    writer: &Writer,
    results: Vec<NewResult>,
) -> Vec<Result<(Receipt, Stored), StoreResultError>> {
    runtime.store_results(SLURM, writer, results, None, pending()).await.unwrap().verdicts
}

/// A successful result without an output.
pub(crate) fn result(id: &CommandId, body: &str) -> NewResult {
    let (command, body) = (id.clone(), json(body));
    NewResult { command, outcome: Outcome::Succeeded, body, output: None }
}

/// The digest of a command, computed here from its fields as `docs/PROTOCOL.md` says: domain and
/// version first, then each field that is there; a name has a length of four bytes before it, a
/// value one of eight.
pub(crate) fn digest_of_fields(fields: &[(&str, Option<&str>)]) -> Digest {
    let mut bytes = Vec::new();
    let all = [("site-control/command", Some("1"))];
    for (name, value) in all.iter().chain(fields) {
        let Some(value) = value else { continue };
        bytes.extend(u32::try_from(name.len()).unwrap().to_be_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(u64::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend(value.as_bytes());
    }
    sha256(&bytes)
}

pub(crate) fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(digest(&SHA256, bytes).as_ref().try_into().unwrap())
}

/// Reads a whole stream as the superuser and proves it: sequences without a gap, no command twice,
/// and every stored digest and chain digest equal to those computed from the commands' fields.
/// Returns the producer's keys in order.
pub(crate) async fn prove_stream(sql: &Client, stream: &Stream) -> Vec<String> {
    let (site, environment) = (stream.site.as_str(), stream.environment.as_str());
    let rows = sql
        .query(
            "SELECT seq, command_id, producer_key, kind, run_id, digest, chain_digest, body,
                    to_char(not_after AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')
                    AS not_after
               FROM site_coordination.command JOIN site_coordination.command_body
              USING (site, environment, seq)
              WHERE site = $1 AND environment = $2 ORDER BY seq",
            &[&site, &environment],
        )
        .await
        .unwrap();
    let mut chain = [0; 32];
    let mut keys = Vec::new();
    for (row, expected) in rows.iter().zip(1i64..) {
        assert_eq!(row.get::<_, i64>("seq"), expected, "a gap before this sequence");
        let digest = digest_of_fields(&[
            ("commandId", Some(row.get("command_id"))),
            ("kind", Some(row.get("kind"))),
            ("runId", row.get("run_id")),
            ("notAfter", row.get("not_after")),
            ("body", Some(row.get("body"))),
        ]);
        assert_eq!(row.get::<_, &[u8]>("digest"), digest.as_bytes(), "at {expected}");
        chain = *sha256(&[chain, *digest.as_bytes()].concat()).as_bytes();
        assert_eq!(row.get::<_, &[u8]>("chain_digest"), chain, "the chain forks at {expected}");
        keys.push(row.get::<_, String>("producer_key"));
    }
    let (commands, distinct) = (keys.len(), keys.iter().collect::<std::collections::HashSet<_>>());
    assert_eq!(distinct.len(), commands, "a key stands twice");
    let head = sql
        .query_one(
            "SELECT last_seq, last_digest FROM site_coordination.stream_head
              WHERE site = $1 AND environment = $2",
            &[&site, &environment],
        )
        .await
        .unwrap();
    assert_eq!(head.get::<_, i64>(0), i64::try_from(commands).unwrap());
    assert_eq!(head.get::<_, &[u8]>(1), chain);
    keys
}

/// Proves the endings of the only stream of a database: each command up to the progress has exactly
/// one, none above has any, and each result has its body. Returns the progress.
pub(crate) async fn prove_endings(sql: &Client) -> i64 {
    let wrong = "SELECT count(*) FROM site_coordination.command c
        JOIN site_coordination.stream_progress p USING (site, environment)
        LEFT JOIN site_coordination.command_result r USING (site, environment, seq)
        LEFT JOIN site_coordination.result_body b USING (site, environment, seq)
        LEFT JOIN site_coordination.command_void v USING (site, environment, seq)
       WHERE (c.seq <= p.done_seq) <> ((r.seq IS NULL) <> (v.seq IS NULL))
          OR (r.seq IS NULL) <> (b.seq IS NULL)
          OR (r.seq IS NOT NULL AND v.seq IS NOT NULL)
          OR r.digest <> sha256(convert_to(b.body, 'UTF8'))";
    assert_eq!(count(sql, wrong).await, 0, "a command has no ending, or two");
    count(sql, "SELECT done_seq FROM site_coordination.stream_progress").await
}

/// How many rows a query without parameters counts.
pub(crate) async fn count(sql: &Client, query: &str) -> i64 {
    sql.query_one(query, &[]).await.unwrap().get(0)
}
