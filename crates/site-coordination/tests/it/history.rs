//! A long history costs a read of one page no more than a short one.

use std::{future::pending, time::Duration};

use site_coordination::{CommandId, Digest, Environment, NextRequest, VoidNote, Wakeups, Writer};
use test_support::eventually;
use tokio_postgres::Client;

use crate::support::{self, Fixture, LONG, SLURM, after, count, poll, result, seq, session, slurm};

const FILL: &str = "
SET search_path = site_coordination;
INSERT INTO stream_head (site, environment, last_seq, cancel_rev)
VALUES ('north-1', 'slurm', 30000, 4000);
INSERT INTO stream_progress VALUES ('north-1', 'slurm', 20000, 1);
INSERT INTO command
SELECT 'north-1', 'slurm', n, 'cmd_' || lpad(n::text, 32, '0'), 'k' || n, 'job', NULL,
       sha256('x'), sha256('x') FROM generate_series(1, 30000) n;
INSERT INTO command_body SELECT 'north-1', 'slurm', n, '1' FROM generate_series(1, 30000) n;
INSERT INTO command_result
SELECT 'north-1', 'slurm', n, sha256('1'), 'failed', 1 FROM generate_series(1, 19000) n;
INSERT INTO result_body SELECT 'north-1', 'slurm', n, '1' FROM generate_series(1, 19000) n;
INSERT INTO command_void SELECT 'north-1', 'slurm', n, 'expired' FROM generate_series(19001, 20000) n;
INSERT INTO command_cancel SELECT 'north-1', 'slurm', n, n / 5 FROM generate_series(5, 20000, 5) n;
INSERT INTO private_output (site, environment, seq, digest, slot, bytes)
SELECT 'north-1', 'slurm', n, sha256('x'), 1, '' FROM generate_series(1, 19000) n";

/// The rows of the context's tables that were read so far, as the server counts them when a session
/// ends.
async fn rows_read(sql: &Client) -> i64 {
    let query = "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint
                   FROM pg_stat_user_tables WHERE schemaname = 'site_coordination'";
    sql.query_one(query, &[]).await.unwrap().get(0)
}

/// Waits for the ends of the pools' sessions and returns the rows that were read since `before`.
async fn read_since(sql: &Client, before: i64) -> i64 {
    let sessions = "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND application_name = 'test'";
    // A session counts its rows at the latest when it ends.
    eventually(LONG, "the ends of the sessions", async || {
        (count(sql, sessions).await == 0).then_some(())
    })
    .await;
    rows_read(sql).await - before
}

/// Fills the stream and returns when that is counted.
async fn fill(fixture: &Fixture, then: &str) -> Client {
    let filler = fixture.sql().await;
    filler.batch_execute(&format!("{FILL};{then}")).await.unwrap();
    drop(filler);
    let sql = fixture.sql().await;
    let filled = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'command'";
    eventually(LONG, "the count of the rows that were filled in", async || {
        (count(&sql, filled).await == 30_000).then_some(())
    })
    .await;
    sql
}

/// The command at a place.
fn id(n: u32) -> CommandId {
    CommandId::parse(&format!("cmd_{n:0>32}")).unwrap()
}

#[tokio::test]
async fn a_page_in_the_middle_of_a_long_history_reads_its_own_rows_only() {
    let fixture = Fixture::create().await;
    let sql = fill(&fixture, "ANALYZE").await;
    for place in [0, 15_000, 29_900] {
        let before = rows_read(&sql).await;
        let runtime = fixture.runtime();
        // More often than it takes until a prepared statement gets a plan for every parameter.
        for _ in 0..8 {
            let request = site_coordination::PollRequest { limit: 64, ..after(place) };
            assert_eq!(poll(&runtime, request).await.unwrap().commands.len(), 64);
        }
        drop(runtime);
        let read = read_since(&sql, before).await;
        assert!(read < 8 * 200, "eight pages after {place} read {read} rows");

        let before = rows_read(&sql).await;
        let producer = fixture.producer(1);
        for _ in 0..8 {
            assert_eq!(producer.list(&slurm(), seq(place), 64).await.unwrap().len(), 64);
        }
        drop(producer);
        let read = read_since(&sql, before).await;
        assert!(read < 8 * 200, "eight lists after {place} read {read} rows");
    }
}

#[tokio::test]
async fn results_in_a_long_history_read_their_own_rows_only() {
    let fixture = Fixture::create().await;
    let sql = fill(&fixture, "ANALYZE").await;

    // Old receipts, voided commands and new results, each with a page after them.
    for first in [9_000, 19_500, 20_001] {
        let before = rows_read(&sql).await;
        let runtime = fixture.runtime();
        for round in 0..8 {
            let first = if first > 20_000 { first + round * 16 } else { first };
            let results = (first..first + 16).map(|n| result(&id(n), "1")).collect();
            let next =
                NextRequest { limit: 16, bytes: u32::MAX, wait: Duration::ZERO, cancel_rev: 0 };
            let stored =
                runtime.store_results(SLURM, &Writer::FIRST, results, Some(next), pending()).await;
            let page = stored.unwrap().next.unwrap();
            assert_eq!(page.commands[0].seq, seq(i64::from(first) + 16));
            assert!(page.cancelled.is_empty());
        }
        drop(runtime);
        let read = read_since(&sql, before).await;
        assert!(read < 8 * 200, "eight batches from {first} on read {read} rows");
    }
}

/// Empties it by its statistics as well, and lets nothing tell the sessions that it no longer is.
async fn empty_by_statistics(fixture: &Fixture) {
    let sql = fixture.sql().await;
    sql.batch_execute(
        "DO $$ DECLARE t text; BEGIN
           FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'site_coordination' LOOP
             EXECUTE format('ALTER TABLE site_coordination.%I SET (autovacuum_enabled = off)', t);
           END LOOP;
         END $$",
    )
    .await
    .unwrap();
    sql.batch_execute("VACUUM ANALYZE").await.unwrap();
}

/// Statements are prepared once on each connection, and a listener can be older than its history.
#[tokio::test]
async fn plans_from_the_days_of_an_empty_database_serve_a_long_history() {
    let fixture = Fixture::create().await;
    empty_by_statistics(&fixture).await;
    let runtime = fixture.runtime();
    let output = Digest::of(b"x");
    let next = NextRequest { limit: 4, bytes: u32::MAX, wait: Duration::ZERO, cancel_rev: 0 };
    let store = async |numbers: std::ops::Range<u32>, next: Option<NextRequest>| {
        let new = |n| site_coordination::NewResult { output: Some(output), ..result(&id(n), "1") };
        let results = numbers.map(new).collect();
        runtime.store_results(SLURM, &Writer::FIRST, results, next, pending()).await.unwrap()
    };
    let all = async |first: u32| {
        for next in [None, Some(next)] {
            store(first..first + 1, next).await;
            store(first..first + 4, next).await;
        }
        let _ = poll(&runtime, site_coordination::PollRequest { limit: 4, ..after(first.into()) })
            .await;
    };
    all(1).await;
    let sql = fill(&fixture, "").await;
    let before = rows_read(&sql).await;
    for first in [9_000, 18_500, 19_500] {
        all(first).await;
    }
    drop(runtime);
    let read = read_since(&sql, before).await;
    assert!(read < 3 * 200, "three rounds of polls and results read {read} rows");
}

#[tokio::test]
async fn such_plans_serve_marks_outputs_and_sessions_as_well() {
    let fixture = Fixture::create().await;
    empty_by_statistics(&fixture).await;
    let (runtime, producer) = (fixture.runtime(), fixture.producer(1));
    let (note, wakeups) = (VoidNote::parse("gone").unwrap(), Wakeups::new(slurm().site));
    let all = async |n: u32, environment: Environment, generation: i64| {
        let id = id(n);
        let _ = producer.void(&slurm(), &id, &note).await;
        let _ = producer.cancel(&slurm(), &id).await;
        let _ = producer.show(&slurm(), &id).await;
        let _ = producer.list(&slurm(), seq(n.into()), 2).await;
        let _ = producer.status(Some(&slurm().site)).await;
        let _ = producer.wait_result(&wakeups, SLURM, &id, Duration::ZERO).await;
        let (digest, bytes) = (Digest::of(b"x"), b"x".to_vec());
        let _ = runtime.store_output(SLURM, &Writer::FIRST, &id, digest, bytes).await;
        let (session, expected) = (session(generation), support::generation(generation - 1));
        runtime.open_session(environment, session, expected).await.unwrap();
    };
    // The other stream of the Site: opening a session makes it.
    all(1, Environment::K8s, 2).await;
    let sql = fill(&fixture, "").await;
    let before = rows_read(&sql).await;
    // One with a result, one that was voided, the one that is due, and one after it.
    for (n, generation) in [(9_000, 2), (19_500, 3), (20_001, 4), (29_000, 5)] {
        all(n, SLURM, generation).await;
    }
    drop((runtime, producer));
    let read = read_since(&sql, before).await;
    assert!((4 * 8..4 * 50).contains(&read), "four rounds of all read {read} rows");
}
