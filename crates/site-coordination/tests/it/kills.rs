//! Backends of the database die while producers and a Runtime work: nothing is lost, nothing is
//! stored twice, and the order stays.

use std::{
    collections::HashMap,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use database::{Context, DatabaseError, DatabaseUrl, Pool, PoolLimits};
use site_coordination::{
    API_ROLE, CONTEXT, Digest, EnqueueError, MIGRATIONS, PRODUCER_ROLE, PollError, PollRequest,
    Producer, ReadError, RuntimeSide, SiteId, StoreResultError, Wakeups,
};
use test_support::{
    eventually,
    postgres::{Access, Cluster, Options},
};
use tokio::sync::Semaphore;
use tokio_postgres::Client;

use crate::support::{Fixture, LONG, SITE, after, command, poll, prove_stream, slurm, store};

const KILLS: u64 = 20;
const PRODUCERS: u64 = 3;

/// A backend of the context that runs a statement, rather than one that idles.
const VICTIM: &str = "SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND usename ~ '^site_coordination' AND pid <> pg_backend_pid()
    ORDER BY state = 'active' DESC, random() LIMIT 1";

/// What the workers have done so far.
struct Progress {
    stored: AtomicU64,
    /// Permits to enqueue: each result gives one back, so that the producers don't run away.
    room: Semaphore,
    /// Producers begin nothing more.
    enough: AtomicBool,
    /// Producers have ended.
    complete: AtomicBool,
}

#[tokio::test(flavor = "multi_thread")]
async fn backends_that_are_terminated_again_and_again_lose_nothing() {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    let kill = async || {
        let row = sql.query_opt(VICTIM, &[]).await.unwrap()?;
        let terminate = "SELECT pg_terminate_backend($1)";
        let row = sql.query_one(terminate, &[&row.get::<_, i32>(0)]).await.unwrap();
        row.get::<_, bool>(0).then_some(())
    };
    let (api, producer) = (fixture.url(API_ROLE.name), fixture.url(PRODUCER_ROLE.name));
    let keys = work_while(&api, &producer, kill).await;
    prove(&fixture.sql().await, keys).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_backends_with_sigkill_and_nothing_is_lost() {
    let installation = Access::of_this_test().installation;
    let options = Options { durable: true, ..Options::default() };
    let cluster = Cluster::start(&installation, options).await.unwrap();
    let admin = cluster.superuser("postgres").await.unwrap();
    admin.batch_execute(&Context::roles_sql(&[&CONTEXT])).await.unwrap();
    admin.batch_execute("ALTER ROLE site_coordination_owner PASSWORD 'aA1'").await.unwrap();
    let url = |role: &str| -> DatabaseUrl { cluster.url(role, "aA1", "postgres").parse().unwrap() };
    for role in [API_ROLE, PRODUCER_ROLE] {
        let password = format!("ALTER ROLE {} PASSWORD 'aA1'", role.name);
        admin.batch_execute(&password).await.unwrap();
    }
    MIGRATIONS.migrate(&url("site_coordination_owner")).await.unwrap();

    // The server ends every other session with the killed one and recovers from its log.
    let kill = async || {
        let sql = connected(&cluster).await;
        let row = sql.query_opt(VICTIM, &[]).await.ok()??;
        let pid = row.get::<_, i32>(0).to_string();
        Command::new("kill").args(["-KILL", &pid]).status().unwrap().success().then_some(())
    };
    let keys = work_while(&url(API_ROLE.name), &url(PRODUCER_ROLE.name), kill).await;
    prove(&connected(&cluster).await, keys).await;
    cluster.stop().await.unwrap();
}

/// A superuser's session, once the server takes one.
async fn connected(cluster: &Cluster) -> Client {
    eventually(LONG, "the server after a kill", async || cluster.superuser("postgres").await.ok())
        .await
}

/// Runs producers and a Runtime, kills whenever twenty more results are stored, and ends when every
/// command has its result. Returns how many commands each producer enqueued.
///
/// `kill` gives none where there was nothing to kill, or it had ended by itself: it is called again
/// then.
async fn work_while(
    api: &DatabaseUrl,
    producer: &DatabaseUrl,
    mut kill: impl AsyncFnMut() -> Option<()>,
) -> Vec<u64> {
    let limits =
        PoolLimits { connections: 4, wait: LONG, statement: LONG, ..PoolLimits::default() };
    let progress = Arc::new(Progress {
        stored: AtomicU64::new(0),
        room: Semaphore::new(50),
        enough: AtomicBool::new(false),
        complete: AtomicBool::new(false),
    });
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|number| {
            let pool = Pool::new(producer, "producer", limits);
            tokio::spawn(produce(Producer::new(pool), number, Arc::clone(&progress)))
        })
        .collect();
    let pool = Pool::new(api, "runtime", limits);
    let wakeups = Wakeups::new(SiteId::parse(SITE).unwrap());
    let feeding = tokio::spawn(wakeups.clone().run(pool.clone()));
    let runtime = tokio::spawn(run(RuntimeSide::new(pool, wakeups), Arc::clone(&progress)));

    for round in 1..=KILLS {
        eventually(LONG, "twenty more results", async || {
            assert!(!runtime.is_finished(), "the Runtime ended");
            (progress.stored.load(Relaxed) >= round * 20).then_some(())
        })
        .await;
        eventually(LONG, "a backend to be killed", &mut kill).await;
    }
    progress.enough.store(true, Relaxed);
    let mut counts = Vec::new();
    for producer in producers {
        counts.push(producer.await.unwrap());
    }
    progress.complete.store(true, Relaxed);
    runtime.await.unwrap();
    feeding.abort();
    counts
}

/// Enqueues one and five in turn until it is enough, again where the database did not answer.
async fn produce(producer: Producer, number: u64, progress: Arc<Progress>) -> u64 {
    let mut count = 0;
    while !progress.enough.load(Relaxed) {
        let size: u32 = if count % 2 == 0 { 1 } else { 5 };
        progress.room.acquire_many(size).await.unwrap().forget();
        let size = u64::from(size);
        let commands: Vec<_> =
            (count..count + size).map(|n| command(&format!("{number}-{n}"))).collect();
        loop {
            let answer = if let [one] = &commands[..] {
                producer.enqueue(&slurm(), one.clone()).await.map(|_| ())
            } else {
                producer.enqueue_many(&slurm(), commands.clone()).await.map(|_| ())
            };
            match answer {
                Ok(()) => break,
                Err(EnqueueError::Database(DatabaseError::Unavailable(_))) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        count += size;
    }
    count
}

/// Polls and stores one result after the other, again where the database did not answer, until it
/// is enough and nothing is left.
async fn run(runtime: RuntimeSide, progress: Arc<Progress>) {
    let (mut cursor, mut digest) = (0, Digest::ZERO);
    loop {
        let complete = progress.complete.load(Relaxed);
        let request = PollRequest {
            after_digest: Some(digest),
            wait: Duration::from_millis(200),
            ..after(cursor)
        };
        let page = match poll(&runtime, request).await {
            Ok(page) => page,
            Err(PollError::Read(ReadError::Database(DatabaseError::Unavailable(_)))) => continue,
            Err(error) => panic!("{error:?}"),
        };
        for command in &page.commands {
            digest = digest.chain(command.digest);
            let body = format!("{{\"to\":\"{}\"}}", command.id.as_str());
            while let Err(error) = store(&runtime, &command.id, &body).await {
                let passing = matches!(
                    error,
                    StoreResultError::Read(ReadError::Database(DatabaseError::Unavailable(_)))
                );
                assert!(passing, "{error:?}");
            }
            progress.stored.fetch_add(1, Relaxed);
            progress.room.add_permits(1);
        }
        cursor = page.next_after.get();
        assert_eq!(page.next_digest, digest);
        if page.commands.is_empty() && complete {
            return;
        }
    }
}

/// Each producer's commands stand in the stream once and in its order, each with its own result.
async fn prove(sql: &Client, counts: Vec<u64>) {
    let keys = prove_stream(sql, &slurm()).await;
    let mut next: HashMap<u64, u64> = HashMap::new();
    for key in &keys {
        let (producer, n) = key.split_once('-').unwrap();
        let expected = next.entry(producer.parse().unwrap()).or_default();
        assert_eq!(n, expected.to_string(), "of producer {producer}");
        *expected += 1;
    }
    for (producer, count) in (0..).zip(counts) {
        assert!(count > 10);
        assert_eq!(next[&producer], count, "of producer {producer}");
    }
    let right = "SELECT count(*) FROM site_coordination.command
          JOIN site_coordination.command_result USING (site, environment, seq)
          JOIN site_coordination.result_body b USING (site, environment, seq)
          JOIN site_coordination.stream_progress p USING (site, environment)
         WHERE b.body = format('{\"to\":\"%s\"}', command_id)
           AND p.done_seq = (SELECT last_seq FROM site_coordination.stream_head)";
    let results = crate::support::count(sql, right).await;
    assert_eq!(usize::try_from(results).unwrap(), keys.len());
}
