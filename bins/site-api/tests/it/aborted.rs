//! Callers that hang up at any moment leave nothing behind.

use std::{sync::Arc, time::Duration};

use test_support::{Random, eventually};
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_postgres::Client;

use crate::support::{CASES, LONG, Place, Request, Wire, plain};

const ABORTED: usize = 2_000;
/// Callers at once; each has its own connection.
const AT_ONCE: usize = 16;
/// Longer than most requests take, so that they are aborted before, during and after.
const LONGEST: Duration = Duration::from_millis(40);

/// What the API's connections to the database do, seen from outside.
#[derive(Debug, PartialEq, Eq)]
struct Backends {
    all: i64,
    not_at_rest: i64,
    locks: i64,
}

async fn backends(sql: &Client) -> Backends {
    let row = "SELECT count(*),
                      count(*) FILTER (WHERE state <> 'idle' OR xact_start IS NOT NULL),
                      (SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
                        WHERE datname = current_database()
                          AND usename = 'site_coordination_api')
                 FROM pg_stat_activity
                WHERE datname = current_database() AND usename = 'site_coordination_api'";
    let row = sql.query_one(row, &[]).await.unwrap();
    Backends { all: row.get(0), not_at_rest: row.get(1), locks: row.get(2) }
}

/// Sends some or all of a request, waits for some of an answer, and hangs up.
async fn abort(wire: Wire, bytes: Vec<u8>, sent: usize, patience: Duration) {
    let Ok(mut connection) = wire.try_open().await else { return };
    connection.write(&bytes[..sent]).await;
    let _answer = tokio::time::timeout(patience, connection.maybe_answer()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_aborted_requests_leave_every_connection_at_rest() {
    let mut random = Random::of_this_test();
    let place = Place::prepare().await;
    let ids = place.enqueue(&["{}"; 200]);
    let api = place.start().await;
    let mut slow = api.sql().await;
    // Statements take a while, so that many are aborted in the middle of one.
    let hindering = tokio::spawn(async move {
        loop {
            let lock = slow.transaction().await.unwrap();
            let exclusive = "LOCK TABLE site_coordination.command IN ACCESS EXCLUSIVE MODE";
            lock.batch_execute(exclusive).await.unwrap();
            lock.batch_execute("SELECT pg_sleep(0.02)").await.unwrap();
            lock.rollback().await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut callers = JoinSet::new();
    for _ in 0..ABORTED {
        let case = random.choose(&CASES).unwrap();
        let id = random.choose(&ids).unwrap();
        let mut request = case.request(id).bearer(&api.bearer()).without("connection");
        if case.pattern == site_protocol::paths::COMMANDS && random.within(0..2) == 0 {
            // One that parks.
            request = api.poll("after=200&wait=25").without("connection");
        }
        let bytes = request.bytes();
        let sent = match random.within(0..3) {
            0 => usize::try_from(random.within(0..bytes.len() as u64)).unwrap(),
            _ => bytes.len(),
        };
        let patience = random.duration(LONGEST);
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let wire = api.wire.clone();
        callers.spawn(async move {
            abort(wire, bytes, sent, patience).await;
            drop(place);
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    hindering.abort();

    let metrics = plain(api.admin, &Request::new("GET", "/metrics")).await;
    let hung_up: u64 = metrics
        .text()
        .lines()
        .filter(|line| line.starts_with("http_requests_total") && line.contains("status=\"499\""))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert!(hung_up > 200, "only {hung_up} requests were aborted in their middle");

    let sql = api.sql().await;
    let at_rest = eventually(LONG, "every connection at rest", async || {
        let backends = backends(&sql).await;
        (backends.not_at_rest == 0 && backends.locks == 0).then_some(backends)
    });
    // Four for statements, one that listens.
    let Backends { all, .. } = at_rest.await;
    assert!((1..=5).contains(&all), "{all} connections");
    eventually(LONG, "the end of their connections", async || {
        let metrics = plain(api.admin, &Request::new("GET", "/metrics")).await;
        // The one that asks.
        metrics.text().lines().any(|line| line == "connections 1").then_some(())
    })
    .await;

    // The stream goes on where the aborted requests have left it.
    let current = "SELECT generation, session_id FROM site_coordination.stream_progress";
    let current = sql.query_one(current, &[]).await.unwrap();
    let (generation, session): (i64, Option<String>) = (current.get(0), current.get(1));
    let generation = generation.to_string();
    let of_the_writer = |request: Request| {
        let request =
            request.without("runtime-generation").header("runtime-generation", &generation);
        match &session {
            Some(session) => request.header("runtime-session", session),
            None => request,
        }
    };
    for id in &ids {
        let result = of_the_writer(api.result(id, b"{\"outcome\":\"succeeded\"}"));
        let status = api.send(&result).await.status;
        assert!(status == 200 || status == 201, "{status}");
    }
    let page = api.send(&of_the_writer(api.poll("after=199"))).await;
    assert_eq!((page.status, &page.json()["head"]), (200, &serde_json::Value::Null));
}
