//! Commands that expire: voided by the tick of a process that serves Runtimes, once they are due, by
//! the database's clock.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Utc};
use site_coordination::{
    API_ROLE, Environment, NewCommand, PRODUCER_ROLE, PollRequest, SiteId, StoreResultError,
    Wakeups,
};
use test_support::eventually;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::support::{
    Fixture, LONG, SITE, SLURM, after, at_once, command, count, poll, prove_endings, slurm, store,
    stream,
};

/// A tick that comes once, at the start.
const NEVER: Duration = Duration::from_secs(86_400);
const OFTEN: Duration = Duration::from_millis(20);

const DONE: &str = "SELECT done_seq FROM site_coordination.stream_progress
                     WHERE environment = 'slurm'";

/// The wake-ups of a process that serves Runtimes, until it is dropped.
struct Serving(JoinHandle<()>);

impl Serving {
    fn start(fixture: &Fixture, tick: Duration) -> Self {
        Self::start_with(fixture, tick, 1)
    }

    fn start_with(fixture: &Fixture, tick: Duration, connections: usize) -> Self {
        let wakeups = Wakeups::new(SiteId::parse(SITE).unwrap()).with_tick(tick).voiding_expired();
        Self(tokio::spawn(wakeups.run(fixture.pool(API_ROLE.name, connections))))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A command that expires so many seconds from now, by the database's clock.
async fn expiring(sql: &Client, key: &str, seconds: i32) -> NewCommand {
    let query = "SELECT clock_timestamp() + make_interval(secs => $1::int)";
    let at: SystemTime = sql.query_one(query, &[&seconds]).await.unwrap().get(0);
    let at: DateTime<Utc> = at.into();
    NewCommand { not_after: Some(at), ..command(key) }
}

async fn done(sql: &Client, seq: i64) {
    let what = format!("the progress to reach {seq}");
    eventually(LONG, &what, async || (count(sql, DONE).await >= seq).then_some(())).await;
}

#[tokio::test]
async fn what_is_due_and_expired_is_voided_and_nothing_else() {
    let fixture = Fixture::create().await;
    let (producer, runtime, sql) = (fixture.producer(1), fixture.runtime(), fixture.sql().await);
    let commands = vec![
        expiring(&sql, "k1", -60).await,
        expiring(&sql, "k2", -1).await,
        expiring(&sql, "k3", 3600).await,
        expiring(&sql, "k4", -60).await,
        command("k5"),
        expiring(&sql, "k6", -60).await,
    ];
    let ids = producer.enqueue_many(&slurm(), commands).await.unwrap();
    let _serving = Serving::start(&fixture, OFTEN);
    done(&sql, 2).await;

    // A later look at the Site has voided this one; it left alone what is not due or not expired.
    let k8s = stream(SITE, Environment::K8s);
    producer.enqueue(&k8s, expiring(&sql, "later", -60).await).await.unwrap();
    let voided = "SELECT count(*) FROM site_coordination.command_void WHERE environment = 'k8s'";
    eventually(LONG, "the later look", async || (count(&sql, voided).await == 1).then_some(()))
        .await;
    assert_eq!(count(&sql, DONE).await, 2);

    store(&runtime, &ids[2].id, "1").await.unwrap();
    done(&sql, 4).await;
    let refusal = store(&runtime, &ids[3].id, "1").await.unwrap_err();
    assert!(matches!(refusal, StoreResultError::AlreadyVoided { .. }), "{refusal:?}");
    store(&runtime, &ids[4].id, "1").await.unwrap();
    done(&sql, 6).await;

    let page = poll(&runtime, after(0)).await.unwrap();
    let voided: Vec<bool> = page.commands.iter().map(|command| command.voided).collect();
    assert_eq!(voided, [true, true, false, true, false, true]);
    assert!(page.due.is_none());
    let events = "SELECT string_agg(format('%s %s %s', seq, subject, data::jsonb ->> 'seq'), ', '
                                    ORDER BY seq)
                    FROM site_coordination.event
                   WHERE environment = 'slurm' AND type = 'commands.command.voided'
                     AND data::jsonb ->> 'reason' = 'expired'";
    let events: String = sql.query_one(events, &[]).await.unwrap().get(0);
    // Number 3 is the other stream's.
    let expected: Vec<String> = [(1, 1), (2, 2), (4, 4), (5, 6)]
        .iter()
        .map(|(number, seq)| format!("{number} {} {seq}", ids[seq - 1].id.as_str()))
        .collect();
    assert_eq!(events, expected.join(", "));
}

#[tokio::test]
async fn one_tick_voids_a_long_row_of_expired_commands() {
    let fixture = Fixture::create().await;
    let (producer, sql) = (fixture.producer(1), fixture.sql().await);
    let late = expiring(&sql, "k", -1).await;
    let row =
        (1..=200).map(|n| NewCommand { not_after: late.not_after, ..command(&format!("k{n}")) });
    producer.enqueue_many(&slurm(), row.collect()).await.unwrap();
    let _serving = Serving::start(&fixture, NEVER);
    done(&sql, 200).await;
    assert_eq!(prove_endings(&sql).await, 200);
    let events = "SELECT count(*) FROM site_coordination.event e JOIN site_coordination.command c
        ON c.command_id = e.subject AND c.seq = e.seq WHERE e.type = 'commands.command.voided'";
    assert_eq!(count(&sql, events).await, 200, "each has its event, in their order");
}

#[tokio::test]
async fn a_stream_that_is_stuck_keeps_nobody_else_waiting() {
    let fixture = Fixture::create().await;
    let (producer, sql) = (fixture.producer(1), fixture.sql().await);
    let mut holder = fixture.sql().await;
    // The first stream of a look, whichever that is, with the other after it.
    for stuck in Environment::ALL {
        let other = Environment::ALL.into_iter().find(|other| *other != stuck).unwrap();
        producer.enqueue(&stream(SITE, stuck), expiring(&sql, "s", -1).await).await.unwrap();
        let lock = holder.transaction().await.unwrap();
        let row = "SELECT FROM site_coordination.stream_progress WHERE environment = $1 FOR UPDATE";
        lock.execute(row, &[&stuck.as_str()]).await.unwrap();
        let serving = Serving::start_with(&fixture, OFTEN, 3);
        let waiting = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually(LONG, "the stuck void", async || {
            (count(&sql, waiting).await == 1).then_some(())
        })
        .await;
        producer.enqueue(&stream(SITE, other), expiring(&sql, "o", -1).await).await.unwrap();
        let open = |environment: Environment| {
            format!(
                "SELECT last_seq - done_seq FROM site_coordination.stream_head
                   JOIN site_coordination.stream_progress USING (site, environment)
                  WHERE environment = '{}'",
                environment.as_str()
            )
        };
        let within = Duration::from_secs(20);
        eventually(within, "the other's void", async || {
            (count(&sql, &open(other)).await == 0).then_some(())
        })
        .await;
        assert_eq!(count(&sql, &open(stuck)).await, 1);
        lock.rollback().await.unwrap();
        eventually(LONG, "the stuck one's void", async || {
            (count(&sql, &open(stuck)).await == 0).then_some(())
        })
        .await;
        drop(serving);
    }
}

#[tokio::test]
async fn a_process_that_serves_nobody_voids_nothing() {
    let fixture = Fixture::create().await;
    let (producer, sql) = (fixture.producer(1), fixture.sql().await);
    let id = producer.enqueue(&slurm(), expiring(&sql, "k1", -60).await).await.unwrap().id;
    let wakeups = Wakeups::new(SiteId::parse(SITE).unwrap()).with_tick(OFTEN);
    let feeding = tokio::spawn(wakeups.clone().run(fixture.pool(PRODUCER_ROLE.name, 1)));
    // It looks while somebody waits: the wait would end with the ending.
    let wait = Duration::from_secs(1);
    let ending = producer.wait_result(&wakeups, SLURM, &id, wait).await.unwrap();
    assert!(ending.is_none(), "{ending:?}");
    feeding.abort();
}

#[tokio::test]
async fn a_producer_that_waits_is_told_of_an_expired_command() {
    let fixture = Fixture::create().await;
    let (producer, sql) = (fixture.producer(1), fixture.sql().await);
    let id = producer.enqueue(&slurm(), expiring(&sql, "k1", 3600).await).await.unwrap().id;
    let wakeups = Wakeups::new(SiteId::parse(SITE).unwrap()).with_tick(NEVER);
    let feeding = tokio::spawn(wakeups.clone().run(fixture.pool(PRODUCER_ROLE.name, 1)));
    let _serving = Serving::start(&fixture, OFTEN);
    let waiting =
        tokio::spawn(
            async move { producer.wait_result(&wakeups, SLURM, &id, LONG).await.unwrap() },
        );
    let read = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE '%-- How a command ended%'";
    eventually(LONG, "the first read", async || (count(&sql, read).await > 0).then_some(())).await;
    sql.batch_execute("UPDATE site_coordination.command SET not_after = clock_timestamp()")
        .await
        .unwrap();
    let ending = waiting.await.unwrap();
    assert!(matches!(ending, Some(site_coordination::Ending::Voided(_))), "{ending:?}");
    feeding.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_result_and_an_expiry_at_once_one_is_the_ending() {
    const ROUNDS: usize = 300;
    let fixture = Fixture::create().await;
    let ids = fixture.filled(ROUNDS).await;
    let runtime = Arc::new(fixture.runtime_of(SITE, 8));
    let sql = Arc::new(fixture.sql().await);
    // Two processes serve the Site.
    let tick = Duration::from_millis(1);
    let _serving = [Serving::start(&fixture, tick), Serving::start(&fixture, tick)];
    let (mut voids, mut results) = (0, 0);
    for (round, id) in ids.iter().enumerate() {
        let answers = at_once(4, |caller| {
            let (runtime, sql, id) = (Arc::clone(&runtime), Arc::clone(&sql), id.clone());
            async move {
                if caller == 0 {
                    let expire = "UPDATE site_coordination.command
                                     SET not_after = clock_timestamp() WHERE command_id = $1";
                    sql.execute(expire, &[&id.as_str()]).await.unwrap();
                    return None;
                }
                // So that now one is first, now the other.
                for _ in 0..round % 5 {
                    let question = PollRequest { limit: 0, ..after(0) };
                    poll(&runtime, question).await.unwrap();
                }
                match store(&runtime, &id, "1").await {
                    Ok(_) => Some(true),
                    Err(StoreResultError::AlreadyVoided { .. }) => Some(false),
                    Err(error) => panic!("a false answer: {error:?}"),
                }
            }
        })
        .await;
        let answers: Vec<bool> = answers.into_iter().flatten().collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "two endings: {answers:?}");
        if answers[0] { results += 1 } else { voids += 1 }
    }
    assert!(voids > 0 && results > 0, "{voids} voids and {results} results: no race");
    assert_eq!(prove_endings(&sql).await, ROUNDS as i64);
    let query = "SELECT count(*) FROM site_coordination.";
    assert_eq!(count(&sql, &format!("{query}command_void")).await, voids);
    assert_eq!(count(&sql, &format!("{query}command_result")).await, results);
    assert_eq!(count(&sql, &format!("{query}event")).await, voids);
}
