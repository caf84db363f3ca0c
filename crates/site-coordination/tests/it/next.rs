//! Results that bring the commands after them along: what a poll would bring, and a wait like its.

use std::{future::pending, sync::Arc, time::Duration};

use site_coordination::{
    NewResult, NextRequest, Page, PollError, PollRequest, RuntimeSide, SiteId, StoreResultError,
    Stored, StoredResults, VoidNote, Wakeups, Writer,
};
use test_support::eventually;
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::support::{
    Fixture, LONG, SITE, SLURM, after, command, command_with, count, poll, prove_endings, result,
    seq, slurm, store, taken_over, writer,
};

/// A tick that no test lives to see: only hints wake.
const NEVER: Duration = Duration::from_secs(86_400);

/// Without a wait and with wide limits.
const ALL: NextRequest =
    NextRequest { limit: 64, bytes: u32::MAX, wait: Duration::ZERO, cancel_rev: 0 };

async fn stored(
    runtime: &RuntimeSide,
    writer: &Writer,
    results: Vec<NewResult>,
    next: NextRequest,
) -> StoredResults {
    runtime.store_results(SLURM, writer, results, Some(next), pending()).await.unwrap()
}

/// A page without its times, to compare it with another.
fn timeless(page: &Page) -> String {
    let mut page = page.clone();
    page.time = page.commands.first().map_or(page.time, |command| command.created_at);
    if page.commands.is_empty() {
        page.time = chrono::DateTime::UNIX_EPOCH;
    }
    if let Some(due) = &mut page.due {
        due.age_seconds = 0;
    }
    format!("{page:?}")
}

#[tokio::test]
async fn a_result_brings_what_a_poll_after_it_would() {
    let fixture = Fixture::create().await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    let mut ids = Vec::new();
    for number in 1..=40 {
        let body = format!("\"{}\"", "x".repeat(number * 7 % 50));
        let command = command_with(&format!("k{number}"), &body);
        ids.push(producer.enqueue(&slurm(), command).await.unwrap().id);
    }
    for place in [39, 12, 30, 5, 20] {
        producer.cancel(&slurm(), &ids[place]).await.unwrap();
    }
    let mut done = 0;
    for number in 0..12u16 {
        let next = NextRequest {
            limit: [1, 3, 64][usize::from(number) % 3],
            bytes: [0, 60, 100, u32::MAX][usize::from(number) % 4],
            cancel_rev: u64::from(number) % 7,
            ..ALL
        };
        let batch = 1 + usize::from(number) % 4;
        let results = ids[done..done + batch].iter().map(|id| result(id, "1")).collect();
        let StoredResults { verdicts, next: page } =
            stored(&runtime, &Writer::FIRST, results, next).await;
        assert!(verdicts.iter().all(|verdict| matches!(verdict, Ok((_, Stored::New)))));
        done += batch;
        let page = page.unwrap();
        let request = PollRequest {
            limit: next.limit,
            bytes: next.bytes,
            cancel_rev: next.cancel_rev,
            ..after(done as i64)
        };
        let polled = poll(&runtime, request).await.unwrap();
        assert_eq!(timeless(&page), timeless(&polled), "{next:?} after {done}");
        assert_eq!(page.due.unwrap().seq, seq(done as i64 + 1), "the state after the results");
        assert!(page.time > page.commands[0].created_at);
    }
}

#[tokio::test]
async fn the_page_follows_the_last_leading_command_with_an_ending() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(8).await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    let of = |places: &[usize]| -> Vec<NewResult> {
        places.iter().map(|place| result(&ids[place - 1], "1")).collect()
    };
    store(&runtime, &ids[0], "1").await.unwrap();
    let note = VoidNote::parse("stuck").unwrap();
    producer.void(&slurm(), &ids[1], &note).await.unwrap();

    let first = async |results| {
        let stored = stored(&runtime, &Writer::FIRST, results, ALL).await;
        stored.next.map(|page| page.commands[0].seq.get())
    };
    assert_eq!(first(of(&[1])).await, Some(2), "an old receipt");
    assert_eq!(first(of(&[2])).await, Some(3), "a voided command");
    assert_eq!(first(of(&[1, 2, 3])).await, Some(4), "one stored now");
    assert_eq!(first(of(&[3, 5, 4])).await, Some(4), "up to the first refusal");
    assert_eq!(first(of(&[7, 5])).await, None, "a refusal at the front");
    let other = vec![result(&ids[0], "2"), result(&ids[5], "1")];
    assert_eq!(first(other).await, None, "a conflict at the front");
    assert_eq!(first(Vec::new()).await, None);
    assert_eq!(prove_endings(&fixture.sql().await).await, 6);
}

#[tokio::test]
async fn a_writer_that_was_taken_over_gets_receipts_and_no_commands() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let runtime = fixture.runtime();
    store(&runtime, &ids[0], "1").await.unwrap();
    taken_over(&runtime, 2).await;
    for (writes, brings) in [(Writer::FIRST, false), (writer(2), true), (writer(3), false)] {
        let stored = stored(&runtime, &writes, vec![result(&ids[0], "1")], ALL).await;
        assert!(matches!(&stored.verdicts[..], [Ok((_, Stored::Same))]));
        assert_eq!(stored.next.is_some(), brings, "{writes:?}");
    }
}

/// A Runtime's side whose wake-ups are fed by hints alone.
struct Fed {
    runtime: Arc<RuntimeSide>,
    feeding: JoinHandle<()>,
    sql: tokio_postgres::Client,
}

impl Fed {
    async fn start(fixture: &Fixture) -> Self {
        let wakeups = Wakeups::new(SiteId::parse(SITE).unwrap()).with_tick(NEVER);
        let feeding = tokio::spawn(wakeups.clone().run(fixture.api_pool(1)));
        let runtime = Arc::new(RuntimeSide::new(fixture.api_pool(1), wakeups));
        let fed = Self { runtime, feeding, sql: fixture.sql().await };
        let listens = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE 'LISTEN %' AND state = 'idle'";
        eventually(LONG, "a listener", async || {
            (count(&fed.sql, listens).await == 1).then_some(())
        })
        .await;
        fed
    }

    /// Stores a result and waits twice `LONG` for what comes next; returns once it is stored.
    async fn parked(
        &self,
        new: NewResult,
        release: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<StoredResults> {
        let done = "SELECT done_seq FROM site_coordination.stream_progress";
        let before = count(&self.sql, done).await;
        let runtime = Arc::clone(&self.runtime);
        let next = Some(NextRequest { wait: LONG * 2, ..ALL });
        let parked = tokio::spawn(async move {
            runtime.store_results(SLURM, &Writer::FIRST, vec![new], next, release).await.unwrap()
        });
        eventually(LONG, "the result", async || {
            (count(&self.sql, done).await > before).then_some(())
        })
        .await;
        assert!(!parked.is_finished());
        parked
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        self.feeding.abort();
    }
}

/// The page of one that ends before its wait; its result is stored whatever it says.
async fn page(parked: JoinHandle<StoredResults>) -> Page {
    let stored = timeout(LONG, parked).await.expect("it is still parked").unwrap();
    assert!(matches!(&stored.verdicts[..], [Ok((_, Stored::New))]), "{stored:?}");
    stored.next.unwrap()
}

#[tokio::test]
async fn it_waits_for_the_next_command_like_a_poll() {
    let fixture = Fixture::create().await;
    let mut ids = fixture.filled(1).await;
    let fed = Fed::start(&fixture).await;
    let producer = fixture.producer(1);
    for number in 2..6 {
        let parked = fed.parked(result(ids.last().unwrap(), "1"), pending()).await;
        let enqueued = producer.enqueue(&slurm(), command(&format!("k{number}"))).await.unwrap();
        let page = page(parked).await;
        assert_eq!(page.commands[0].id, enqueued.id);
        ids.push(enqueued.id);
    }
}

#[tokio::test]
async fn a_wait_ends_with_its_time_its_release_or_a_later_poll_and_keeps_the_receipt() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(4).await;
    let producer = fixture.producer(1);
    // The last of the stream each time: there is nothing after it.
    let fed = Fed::start(&fixture).await;
    for id in &ids[..3] {
        store(&fed.runtime, id, "1").await.unwrap();
    }
    let parked = fed.parked(result(&ids[3], "1"), pending()).await;
    poll(&fed.runtime, after(4)).await.unwrap();
    let superseded = page(parked).await;
    assert!(superseded.superseded && superseded.commands.is_empty());
    assert_eq!((superseded.next_after, superseded.last_seq), (seq(4), seq(4)));

    let five = producer.enqueue(&slurm(), command("five")).await.unwrap().id;
    let (release, released) = oneshot::channel::<()>();
    let parked = fed.parked(result(&five, "1"), async { released.await.unwrap() }).await;
    release.send(()).unwrap();
    let empty = page(parked).await;
    assert!(empty.commands.is_empty() && !empty.superseded);

    let six = producer.enqueue(&slurm(), command("six")).await.unwrap().id;
    let wait = Duration::from_millis(200);
    let begun = Instant::now();
    let next = NextRequest { wait, ..ALL };
    let stored = stored(&fed.runtime, &Writer::FIRST, vec![result(&six, "1")], next).await;
    assert!(begun.elapsed() >= wait && stored.next.unwrap().commands.is_empty());
}

#[tokio::test]
async fn it_releases_a_poll_that_waits() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let runtime = Arc::new(fixture.runtime());
    let waiting = {
        let runtime = Arc::clone(&runtime);
        let request = PollRequest { wait: LONG * 2, ..after(1) };
        tokio::spawn(async move { poll(&runtime, request).await })
    };
    let read = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE '%-- The commands after a sequence%'
          AND state = 'idle'";
    let sql = fixture.sql().await;
    eventually(LONG, "the poll's first read", async || (count(&sql, read).await > 0).then_some(()))
        .await;
    store(&runtime, &ids[0], "1").await.unwrap();
    // One whose page is refused leaves it alone.
    stored(&runtime, &writer(9), vec![result(&ids[0], "1")], ALL).await;
    assert!(!waiting.is_finished());
    stored(&runtime, &Writer::FIRST, vec![result(&ids[0], "1")], ALL).await;
    let page = timeout(LONG, waiting).await.expect("it is still parked").unwrap().unwrap();
    assert!(page.superseded);
}

#[tokio::test]
async fn a_take_over_ends_the_wait_and_takes_no_receipt_back() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let fed = Fed::start(&fixture).await;
    let parked = fed.parked(result(&ids[0], "1"), pending()).await;
    // At another process: only its hint tells.
    taken_over(&fixture.runtime(), 2).await;
    let empty = page(parked).await;
    assert!(empty.commands.is_empty() && empty.cancelled.is_empty() && !empty.superseded);
    let refusal = poll(&fed.runtime, after(1)).await.unwrap_err();
    assert!(matches!(refusal, PollError::StaleGeneration { .. }), "{refusal:?}");
    let refusal = store(&fed.runtime, &ids[0], "2").await.unwrap_err();
    assert!(matches!(refusal, StoreResultError::Conflict { .. }), "{refusal:?}");
}
