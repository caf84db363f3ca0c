//! Waiting for an ending: woken by a hint or by the tick, without a connection meanwhile.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use site_coordination::{
    CommandId, Ending, Environment, PRODUCER_ROLE, Producer, SiteId, Stored, VoidNote, VoidReason,
    WaitError, Wakeups,
};
use test_support::eventually;
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_postgres::Client;

use crate::support::{Fixture, LONG, SITE, SLURM, command, count, slurm, store};

/// A tick that no test lives to see: only hints wake.
const NEVER: Duration = Duration::from_secs(86_400);

/// When the newest read of an ending that is over began.
const NEWEST_READ: &str = "SELECT max(query_start) FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'idle'
      AND query LIKE '%-- How a command ended%'";

type Wait = JoinHandle<Result<Option<Ending>, WaitError>>;

/// A producer with wake-ups that are fed.
struct Fed {
    producer: Producer,
    wakeups: Wakeups,
    sql: Client,
    feeding: JoinHandle<()>,
}

impl Fed {
    async fn start(fixture: &Fixture, tick: Duration) -> Self {
        let wakeups = Wakeups::new(SiteId::parse(SITE).unwrap()).with_tick(tick);
        // With the producer's role: a control plane feeds its own.
        let pool = fixture.pool(PRODUCER_ROLE.name, 1);
        let feeding = tokio::spawn(wakeups.clone().run(pool));
        let fed =
            Self { producer: fixture.producer(1), wakeups, sql: fixture.sql().await, feeding };
        let listening = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE 'LISTEN %' AND state = 'idle'";
        eventually(LONG, "a backend that listens", async || {
            (count(&fed.sql, listening).await == 1).then_some(())
        })
        .await;
        fed
    }

    /// Starts to wait for the ending of `id`, twice `LONG`, and returns once the first read is over.
    async fn parked(&self, id: &CommandId) -> Wait {
        let before = self.newest_read().await;
        let (producer, wakeups, id) = (self.producer.clone(), self.wakeups.clone(), id.clone());
        let wait =
            tokio::spawn(async move { producer.wait_result(&wakeups, SLURM, &id, LONG * 2).await });
        eventually(LONG, "the first read of the ending", async || {
            (self.newest_read().await > before).then_some(())
        })
        .await;
        assert!(!wait.is_finished());
        wait
    }

    async fn newest_read(&self) -> Option<SystemTime> {
        self.sql.query_one(NEWEST_READ, &[]).await.unwrap().get(0)
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        self.feeding.abort();
    }
}

async fn ending(wait: Wait) -> Ending {
    let answer = timeout(LONG, wait).await.expect("it still waits");
    answer.unwrap().unwrap().expect("there is an ending")
}

fn body(ending: Ending) -> String {
    match ending {
        Ending::Result(result) => result.body.unwrap().into_string(),
        Ending::Voided(voided) => panic!("{voided:?}"),
    }
}

/// Stored, and its hint never sent: by a process that died between the two.
const STORED_IN_SILENCE: &str = r#"
    WITH moved AS (
        UPDATE site_coordination.stream_progress SET done_seq = 2
         WHERE site = $1 AND environment = 'slurm' RETURNING done_seq
    ), stored AS (
        INSERT INTO site_coordination.command_result
               (site, environment, seq, digest, outcome, generation)
        SELECT $1, 'slurm', done_seq, sha256('{"jobId": 7}'), 'succeeded', 1 FROM moved
    )
    INSERT INTO site_coordination.result_body (site, environment, seq, body)
    SELECT $1, 'slurm', done_seq, '{"jobId": 7}' FROM moved"#;

#[tokio::test]
async fn a_repeated_result_tells_what_the_first_could_not() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let fed = Fed::start(&fixture, NEVER).await;
    let runtime = fixture.runtime();
    // The first may be woken by the listener's start.
    let wait = fed.parked(&ids[0]).await;
    store(&runtime, &ids[0], "{}").await.unwrap();
    ending(wait).await;

    let wait = fed.parked(&ids[1]).await;
    fed.sql.execute(STORED_IN_SILENCE, &[&SITE]).await.unwrap();
    assert!(!wait.is_finished());
    let (_, stored) = store(&runtime, &ids[1], r#"{"jobId": 7}"#).await.unwrap();
    assert_eq!(stored, Stored::Same);
    assert_eq!(body(ending(wait).await), r#"{"jobId": 7}"#);
}

#[tokio::test]
async fn a_hint_of_a_result_or_a_void_wakes_who_waits_for_it() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(6).await;
    let fed = Fed::start(&fixture, NEVER).await;
    // Another process than the one that waits: its hints come through the database.
    let (runtime, operator) = (fixture.runtime(), fixture.producer(1));
    // The first may also be woken by the listener's start; the others by nothing but their hint.
    for pair in ids.chunks(2) {
        let wait = fed.parked(&pair[0]).await;
        store(&runtime, &pair[0], r#"{"jobId": 7}"#).await.unwrap();
        assert_eq!(body(ending(wait).await), r#"{"jobId": 7}"#);

        let wait = fed.parked(&pair[1]).await;
        operator.void(&slurm(), &pair[1], &VoidNote::parse("gone").unwrap()).await.unwrap();
        let Ending::Voided(voided) = ending(wait).await else { panic!("it was voided") };
        assert_eq!((voided.reason, voided.note.as_deref()), (VoidReason::Operator, Some("gone")));
    }
}

#[tokio::test]
async fn a_lost_hint_of_an_ending_costs_a_tick() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(4).await;
    let fed = Fed::start(&fixture, Duration::from_millis(50)).await;
    let no_hints = "REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC";
    fed.sql.batch_execute(no_hints).await.unwrap();
    let runtime = fixture.runtime();
    for (number, id) in ids.iter().enumerate() {
        let wait = fed.parked(id).await;
        store(&runtime, id, &number.to_string()).await.unwrap();
        assert_eq!(body(ending(wait).await), number.to_string());
    }
}

#[tokio::test]
async fn who_waits_for_a_later_command_waits_on_through_the_endings_before_it() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let fed = Fed::start(&fixture, NEVER).await;
    let runtime = fixture.runtime();
    let wait = fed.parked(&ids[2]).await;
    for id in &ids[..2] {
        let before = fed.newest_read().await;
        store(&runtime, id, "1").await.unwrap();
        eventually(LONG, "another read of the ending", async || {
            (fed.newest_read().await > before).then_some(())
        })
        .await;
        assert!(!wait.is_finished());
    }
    store(&runtime, &ids[2], "3").await.unwrap();
    assert_eq!(body(ending(wait).await), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_wait_at_once_each_get_their_own_ending_and_hold_no_connection() {
    let fixture = Fixture::create().await;
    let ids = Arc::new(fixture.filled(32).await);
    let fed = Fed::start(&fixture, NEVER).await;
    let mut waits = Vec::new();
    for id in ids.iter() {
        waits.push(fed.parked(id).await);
    }
    let busy = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'site_coordination_producer'
          AND (state <> 'idle' OR xact_start IS NOT NULL)";
    assert_eq!(count(&fed.sql, busy).await, 0);
    // The pool's only connection serves others meanwhile.
    fed.producer.enqueue(&slurm(), command("more")).await.unwrap();
    let runtime = fixture.runtime();
    for (number, id) in ids.iter().enumerate() {
        store(&runtime, id, &number.to_string()).await.unwrap();
    }
    for (number, wait) in waits.into_iter().enumerate() {
        assert_eq!(body(ending(wait).await), number.to_string());
    }
}

#[tokio::test]
async fn an_ending_that_is_there_is_answered_at_once_and_a_wait_ends() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let producer = fixture.producer(1);
    // Nothing feeds these.
    let wakeups = Wakeups::new(SiteId::parse(SITE).unwrap());
    let wait = async |id: &CommandId, wait: Duration| {
        producer.wait_result(&wakeups, SLURM, id, wait).await
    };
    store(&fixture.runtime(), &ids[0], "1").await.unwrap();
    let answer = timeout(LONG, wait(&ids[0], LONG * 2)).await.unwrap();
    assert_eq!(body(answer.unwrap().unwrap()), "1");

    assert!(wait(&ids[1], Duration::ZERO).await.unwrap().is_none());
    let (begun, short) = (Instant::now(), Duration::from_millis(200));
    assert!(wait(&ids[1], short).await.unwrap().is_none());
    assert!(begun.elapsed() >= short);

    let unknown = CommandId::parse(&format!("cmd_{}", "0".repeat(32))).unwrap();
    for (environment, id) in [(SLURM, &unknown), (Environment::K8s, &ids[0])] {
        let refusal = producer.wait_result(&wakeups, environment, id, LONG * 2).await.unwrap_err();
        assert!(matches!(refusal, WaitError::UnknownCommand), "{refusal:?}");
    }
}
