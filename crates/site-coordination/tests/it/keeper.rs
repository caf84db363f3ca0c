//! Retention: bodies first, receipts long after, a stream from its beginning only, and nothing that
//! has no ending.

use std::sync::Arc;

use site_coordination::{
    CancelError, CommandId, KEEPER_ROLE, Keeper, NewResult, Outbox, PollError, PollRequest, Pruned,
    Retention, SiteId, Stored, VoidNote, Writer,
};
use tokio_postgres::Client;

use crate::support::{
    Fixture, SITE, SLURM, after, at_once, command, commands_named, count, poll, result, seq,
    sha256, slurm, store,
};

impl Fixture {
    fn keeper(&self) -> Keeper {
        Keeper::new(self.pool(KEEPER_ROLE.name, 1))
    }

    async fn prune(&self) -> Pruned {
        self.keeper().prune(Retention::default()).await.unwrap()
    }
}

/// Makes the endings up to a sequence older by so many days.
async fn age(sql: &Client, up_to: i64, days: i64) {
    sql.batch_execute(&format!(
        "SET search_path = site_coordination;
         UPDATE command_result SET received_at = received_at - interval '{days} d'
          WHERE seq <= {up_to};
         UPDATE command_void SET voided_at = voided_at - interval '{days} d' WHERE seq <= {up_to};"
    ))
    .await
    .unwrap();
}

async fn age_events(sql: &Client, days: i64) {
    sql.batch_execute(&format!(
        "UPDATE site_coordination.event SET occurred_at = occurred_at - interval '{days} d'"
    ))
    .await
    .unwrap();
}

async fn rows(sql: &Client, table: &str) -> Vec<i64> {
    let query = format!("SELECT seq FROM site_coordination.{table} ORDER BY seq");
    sql.query(&query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn trimmed(sql: &Client) -> i64 {
    count(sql, "SELECT trimmed_seq FROM site_coordination.stream_head").await
}

fn bodies(commands_bodies: u64) -> Pruned {
    Pruned { commands_bodies, ..Pruned::default() }
}

#[tokio::test]
async fn bodies_of_what_ended_long_ago_go_and_a_run_again_does_nothing() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(6).await;
    let (producer, runtime, sql) = (fixture.producer(1), fixture.runtime(), fixture.sql().await);
    assert_eq!(fixture.prune().await, Pruned::default());
    store(&runtime, &ids[0], "1").await.unwrap();
    producer.void(&slurm(), &ids[1], &VoidNote::parse("x").unwrap()).await.unwrap();
    for id in &ids[2..5] {
        store(&runtime, id, "1").await.unwrap();
    }
    age(&sql, 4, 29).await;
    assert_eq!(fixture.prune().await, Pruned::default());

    // The third ended lately: what comes after it stays, however old.
    age(&sql, 4, 2).await;
    sql.batch_execute(
        "UPDATE site_coordination.command_result SET received_at = clock_timestamp() WHERE seq = 3",
    )
    .await
    .unwrap();
    assert_eq!(fixture.prune().await, bodies(3));
    assert_eq!(trimmed(&sql).await, 2);
    assert_eq!(rows(&sql, "command_body").await, [3, 4, 5, 6]);
    assert_eq!(rows(&sql, "result_body").await, [3, 4, 5]);
    assert_eq!(rows(&sql, "command").await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(fixture.prune().await, Pruned::default());

    age(&sql, 5, 40).await;
    assert_eq!(fixture.prune().await, bodies(6));
    assert_eq!(trimmed(&sql).await, 5);
    assert_eq!(rows(&sql, "command_body").await, [6], "a command without an ending keeps its own");
    let shown = producer.show(&slurm(), &ids[4]).await.unwrap().unwrap();
    assert!(shown.body.is_none() && shown.result.unwrap().body.is_none());
}

#[tokio::test]
async fn a_command_without_an_ending_holds_everything_behind_it() {
    let fixture = Fixture::create().await;
    fixture.filled(3).await;
    let sql = fixture.sql().await;
    let ancient = "UPDATE site_coordination.command SET created_at = '2000-01-01Z',
                          not_after = '2000-01-02Z'";
    sql.batch_execute(ancient).await.unwrap();
    let none = Retention { bodies: 0, receipts: 0, events: 0 };
    assert_eq!(fixture.keeper().prune(none).await.unwrap(), Pruned::default());
    assert_eq!(trimmed(&sql).await, 0);
    assert_eq!(rows(&sql, "command_body").await, [1, 2, 3]);
}

#[tokio::test]
async fn an_identical_result_is_acknowledged_after_its_body_is_gone() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let (runtime, sql) = (fixture.runtime(), fixture.sql().await);
    store(&runtime, &ids[0], r#"{"jobId": 7}"#).await.unwrap();
    age(&sql, 1, 31).await;
    assert_eq!(fixture.prune().await, bodies(2));
    let received = "SELECT received_at FROM site_coordination.command_result";
    let stored: std::time::SystemTime = sql.query_one(received, &[]).await.unwrap().get(0);
    let (receipt, again) = store(&runtime, &ids[0], r#"{"jobId": 7}"#).await.unwrap();
    assert_eq!(again, Stored::Same);
    assert_eq!(receipt.received_at, chrono::DateTime::<chrono::Utc>::from(stored));
    assert!(store(&runtime, &ids[0], "8").await.is_err(), "another one is refused as ever");
}

#[tokio::test]
async fn private_outputs_go_with_the_bodies_and_the_receipt_still_names_the_one_that_counted() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let (producer, runtime, sql) = (fixture.producer(1), fixture.runtime(), fixture.sql().await);
    let keep = async |id: &CommandId, bytes: &[u8]| {
        let bytes = bytes.to_vec();
        runtime.store_output(SLURM, &Writer::FIRST, id, sha256(&bytes), bytes).await.unwrap();
    };
    for bytes in [b"one", b"two"] {
        keep(&ids[0], bytes).await;
    }
    let with_output = NewResult { output: Some(sha256(b"two")), ..result(&ids[0], "1") };
    let (receipt, _) =
        runtime.store_result(SLURM, &Writer::FIRST, with_output.clone()).await.unwrap();
    keep(&ids[1], b"one").await;
    producer.void(&slurm(), &ids[1], &VoidNote::parse("x").unwrap()).await.unwrap();
    keep(&ids[2], b"one").await;

    age(&sql, 2, 31).await;
    let expected = Pruned { commands_bodies: 3, outputs: 3, ..Pruned::default() };
    assert_eq!(fixture.prune().await, expected);
    assert_eq!(rows(&sql, "private_output").await, [3], "that of the command that is due stays");
    let shown = producer.show(&slurm(), &ids[0]).await.unwrap().unwrap();
    assert_eq!(shown.result.unwrap().output_digest, Some(sha256(b"two")));
    let again = runtime.store_result(SLURM, &Writer::FIRST, with_output).await.unwrap();
    assert_eq!((again.0.digest, again.1), (receipt.digest, Stored::Same));

    age(&sql, 2, 400).await;
    assert_eq!(fixture.prune().await, Pruned { rows: 1, ..Pruned::default() });
}

#[tokio::test]
async fn a_poll_below_what_is_gone_is_told_and_one_above_reads_on() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(5).await;
    let (runtime, sql) = (fixture.runtime(), fixture.sql().await);
    for id in &ids[..3] {
        store(&runtime, id, "1").await.unwrap();
    }
    let whole = poll(&runtime, after(0)).await.unwrap();
    let digest_at_three = whole.commands[2].chain_digest;
    age(&sql, 3, 500).await;
    let pruned = fixture.prune().await;
    // The row at the trimmed place stays.
    assert_eq!(pruned, Pruned { commands_bodies: 6, rows: 2, ..Pruned::default() });
    assert_eq!(rows(&sql, "command").await, [3, 4, 5]);

    for place in 0..3 {
        let refusal = poll(&runtime, after(place)).await.unwrap_err();
        assert!(
            matches!(refusal, PollError::CursorTrimmed { after, digest }
                     if after == seq(3) && digest == digest_at_three),
            "after {place}: {refusal:?}"
        );
    }
    let request = PollRequest { after_digest: Some(digest_at_three), ..after(3) };
    let page = poll(&runtime, request).await.unwrap();
    assert_eq!(page.commands.len(), 2);
    assert_eq!(page.next_digest, whole.next_digest);
    // The stream goes on, also one that has only that row left.
    for id in &ids[3..] {
        store(&runtime, id, "1").await.unwrap();
    }
    age(&sql, 5, 500).await;
    fixture.prune().await;
    assert_eq!(rows(&sql, "command").await, [5]);
    fixture.producer(1).enqueue(&slurm(), command("more")).await.unwrap();
    let request = PollRequest { after_digest: Some(whole.next_digest), ..after(5) };
    assert_eq!(poll(&runtime, request).await.unwrap().commands.len(), 1);
}

#[tokio::test]
async fn receipts_and_marks_go_with_their_command_long_after_the_bodies() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(4).await;
    let (producer, runtime, sql) = (fixture.producer(1), fixture.runtime(), fixture.sql().await);
    for id in &ids[..2] {
        producer.cancel(&slurm(), id).await.unwrap();
    }
    store(&runtime, &ids[0], "1").await.unwrap();
    producer.void(&slurm(), &ids[1], &VoidNote::parse("x").unwrap()).await.unwrap();
    for id in &ids[2..] {
        store(&runtime, id, "1").await.unwrap();
    }
    age(&sql, 4, 399).await;
    assert_eq!(fixture.prune().await, bodies(7));
    age(&sql, 2, 2).await;
    assert_eq!(fixture.prune().await, Pruned { rows: 2, ..Pruned::default() });
    for (table, left) in [
        ("command", vec![3, 4]),
        ("command_result", vec![3, 4]),
        ("command_void", vec![]),
        ("command_cancel", vec![]),
    ] {
        assert_eq!(rows(&sql, table).await, left, "{table}");
    }
    assert_eq!(fixture.prune().await, Pruned::default());
    assert!(producer.show(&slurm(), &ids[0]).await.unwrap().is_none());
    let refusal = producer.cancel(&slurm(), &ids[0]).await.unwrap_err();
    assert!(matches!(refusal, CancelError::UnknownCommand), "{refusal:?}");
}

#[tokio::test]
async fn receipts_never_go_before_bodies() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let (runtime, sql) = (fixture.runtime(), fixture.sql().await);
    for id in &ids {
        store(&runtime, id, "1").await.unwrap();
    }
    age(&sql, 2, 10).await;
    let odd = Retention { bodies: 30, receipts: 1, events: 1 };
    assert_eq!(fixture.keeper().prune(odd).await.unwrap(), Pruned::default());
    // As after a run that was interrupted between the two: trimmed, and the bodies are there.
    sql.batch_execute("UPDATE site_coordination.stream_head SET trimmed_seq = 2").await.unwrap();
    let pruned = fixture.keeper().prune(odd).await.unwrap();
    assert_eq!(pruned, Pruned { commands_bodies: 4, rows: 1, ..Pruned::default() });
}

#[tokio::test]
async fn an_event_stays_until_the_relay_of_its_site_has_published_it() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(5).await;
    let (producer, sql) = (fixture.producer(1), fixture.sql().await);
    for id in &ids[..4] {
        producer.cancel(&slurm(), id).await.unwrap();
    }
    let outbox = Outbox::new(fixture.api_pool(1), SiteId::parse(SITE).unwrap());
    assert_eq!(outbox.position().await.unwrap(), 0);
    age_events(&sql, 399).await;
    outbox.published(2).await.unwrap();
    assert_eq!(fixture.prune().await, Pruned::default());
    age_events(&sql, 2).await;
    assert_eq!(fixture.prune().await, Pruned { events: 2, ..Pruned::default() });
    assert_eq!(rows(&sql, "event").await, [3, 4]);
    assert_eq!(outbox.next(2, 9).await.unwrap().len(), 2);

    // Where nobody relays, age alone counts; the numbers go on.
    sql.batch_execute("DELETE FROM site_coordination.event_relay").await.unwrap();
    assert_eq!(fixture.prune().await, Pruned { events: 2, ..Pruned::default() });
    producer.cancel(&slurm(), &ids[4]).await.unwrap();
    assert_eq!(rows(&sql, "event").await, [5]);
    assert_eq!(outbox.position().await.unwrap(), 4, "a new relay begins before what is left");
    assert_eq!(fixture.prune().await, Pruned::default());
}

/// A stream of 2,500 commands that all ended long ago, and as many events.
const LONG_AGO: &str = "
SET search_path = site_coordination;
INSERT INTO stream_head (site, environment, last_seq) VALUES ('north-1', 'slurm', 2500);
INSERT INTO stream_progress (site, environment, done_seq)
VALUES ('north-1', 'slurm', 2500);
INSERT INTO command (site, environment, seq, command_id, producer_key, kind, digest,
                     chain_digest)
SELECT 'north-1', 'slurm', n, 'cmd_' || lpad(n::text, 32, '0'), 'k' || n, 'job',
       sha256('x'), sha256('x') FROM generate_series(1, 2500) n;
INSERT INTO command_body
SELECT 'north-1', 'slurm', n, '1' FROM generate_series(1, 2500) n;
INSERT INTO command_result (site, environment, seq, digest, outcome, generation,
                            received_at)
SELECT 'north-1', 'slurm', n, sha256('x'), 'failed', 1, '2020-01-01Z'
  FROM generate_series(1, 2500) n;
INSERT INTO result_body
SELECT 'north-1', 'slurm', n, '1' FROM generate_series(1, 2500) n;
INSERT INTO event_counter VALUES ('north-1', 2500);
INSERT INTO event (site, seq, type, environment, subject, data, occurred_at)
SELECT 'north-1', n, 'commands.session.opened', 'slurm', 'x', '{}', '2020-01-01Z'
  FROM generate_series(1, 2500) n;";

#[tokio::test]
async fn a_long_history_goes_in_batches() {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    sql.batch_execute(LONG_AGO).await.unwrap();
    sql.batch_execute(
        "CREATE TABLE public.deleted (rows bigint);
         CREATE FUNCTION public.measure() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
         BEGIN
             INSERT INTO public.deleted SELECT count(*) FROM gone;
             RETURN NULL;
         END $$;",
    )
    .await
    .unwrap();
    for table in ["command", "command_body", "command_result", "result_body", "event"] {
        let trigger = format!(
            "CREATE TRIGGER measure AFTER DELETE ON site_coordination.{table}
             REFERENCING OLD TABLE AS gone EXECUTE FUNCTION public.measure()"
        );
        sql.batch_execute(&trigger).await.unwrap();
    }
    let pruned = fixture.prune().await;
    let expected = Pruned { commands_bodies: 5000, outputs: 0, rows: 2499, events: 2500 };
    assert_eq!(pruned, expected);
    let most = count(&sql, "SELECT max(rows) FROM public.deleted").await;
    assert!((100..=1000).contains(&most), "{most} rows at once");
    assert_eq!(rows(&sql, "command").await, [2500]);
}

#[tokio::test(flavor = "multi_thread")]
async fn keepers_beside_producers_and_a_runtime_take_nothing_that_must_stay() {
    const ROUNDS: usize = 12;
    let fixture = Arc::new(Fixture::create().await);
    let (producer, runtime) = (fixture.producer(8), Arc::new(fixture.runtime_of(SITE, 8)));
    // Whatever has an ending may go at once.
    let none = Retention { bodies: 0, receipts: 0, events: 0 };
    let barrier = Arc::new(tokio::sync::Barrier::new(4));

    let keeping = [(), ()].map(|()| {
        let (fixture, barrier) = (Arc::clone(&fixture), Arc::clone(&barrier));
        tokio::spawn(async move {
            let keeper = fixture.keeper();
            let mut all = Pruned::default();
            barrier.wait().await;
            loop {
                let pruned = keeper.prune(none).await.unwrap();
                all.commands_bodies += pruned.commands_bodies;
                all.rows += pruned.rows;
                let sql = fixture.sql().await;
                let done =
                    "SELECT coalesce(max(done_seq), 0) FROM site_coordination.stream_progress";
                if count(&sql, done).await == 8 * 8 * ROUNDS as i64 {
                    return all;
                }
            }
        })
    });
    let enqueuing = tokio::spawn({
        let (producer, barrier) = (producer.clone(), Arc::clone(&barrier));
        async move {
            barrier.wait().await;
            at_once(8, |caller| {
                let producer = producer.clone();
                async move {
                    for round in 0..ROUNDS {
                        let list = commands_named(&format!("k{caller}-{round}-"), 8);
                        producer.enqueue_many(&slurm(), list).await.unwrap();
                    }
                }
            })
            .await;
        }
    });
    let answering = tokio::spawn({
        let (producer, runtime) = (producer.clone(), Arc::clone(&runtime));
        async move {
            barrier.wait().await;
            let note = VoidNote::parse("x").unwrap();
            let (mut cursor, mut digest) = (0, site_coordination::Digest::ZERO);
            while cursor < 8 * 8 * ROUNDS as i64 {
                // Its own cursor is never above the first command without an ending, so nothing
                // that it asks for is ever gone, and the chain goes on.
                let request = PollRequest { after_digest: Some(digest), limit: 5, ..after(cursor) };
                let page = poll(&runtime, request).await.unwrap();
                for command in &page.commands {
                    cursor += 1;
                    assert_eq!(command.seq.get(), cursor, "a command is gone");
                    if cursor % 7 == 0 {
                        producer.cancel(&slurm(), &command.id).await.unwrap();
                        producer.void(&slurm(), &command.id, &note).await.unwrap();
                    } else {
                        store(&runtime, &command.id, "1").await.unwrap();
                    }
                }
                digest = page.next_digest;
            }
        }
    });
    enqueuing.await.unwrap();
    answering.await.unwrap();
    let (mut bodies, mut rows_gone) = (0, 0);
    for keeper in keeping {
        let kept = keeper.await.unwrap();
        assert!(kept.rows > 0, "a keeper ran after all was over");
        bodies += kept.commands_bodies;
        rows_gone += kept.rows;
    }
    let rest = fixture.keeper().prune(none).await.unwrap();
    let all = 8 * 8 * ROUNDS as u64;
    let voided = all / 7;
    assert_eq!(bodies + rest.commands_bodies, 2 * all - voided);
    assert_eq!(rows_gone + rest.rows, all - 1);
    assert_eq!(rows(&fixture.sql().await, "command").await, [all as i64]);
}

#[tokio::test(flavor = "multi_thread")]
async fn keepers_at_once_delete_everything_once() {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    sql.batch_execute(LONG_AGO).await.unwrap();
    let pool = fixture.pool(KEEPER_ROLE.name, 4);
    let pruned = at_once(4, |_| {
        let keeper = Keeper::new(pool.clone());
        async move { keeper.prune(Retention::default()).await.unwrap() }
    })
    .await;
    let sum = |of: fn(&Pruned) -> u64| pruned.iter().map(of).sum::<u64>();
    assert_eq!(sum(|p| p.commands_bodies), 5000);
    assert_eq!((sum(|p| p.rows), sum(|p| p.events)), (2499, 2500));
    assert_eq!(rows(&sql, "command").await, [2500]);
    assert_eq!(fixture.prune().await, Pruned::default());
}
