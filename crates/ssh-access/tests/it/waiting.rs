//! Who waits for changes is woken.

use std::{future::pending, time::Duration};

use database::{Hint, Listener};
use ssh_access::{API_ROLE, Cursor, Feed, Operation, PROCESS_ROLE, Wakeups, Window};
use test_support::eventually;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};

use crate::support::{Fixture, LONG, changes, here, key, member, site, unix_user};

/// A feed whose wake-ups are fed.
fn fed(fixture: &Fixture, tick: Duration) -> (Feed, tokio::task::JoinHandle<()>) {
    let wakeups = Wakeups::new(here()).with_tick(tick);
    let feed = Feed::new(fixture.pool(API_ROLE.name, 4), wakeups.clone(), Window::DEFAULT);
    let feeding = tokio::spawn(wakeups.run(fixture.pool(API_ROLE.name, 1)));
    (feed, feeding)
}

async fn listening(fixture: &Fixture) -> bool {
    let query = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND query LIKE 'LISTEN ssh_access_%'";
    fixture.count(query).await > 0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_wakes_who_waits_by_a_hint() {
    let fixture = Fixture::create().await;
    // The tick is so slow that a hint alone can wake.
    let (feed, feeding) = fed(&fixture, Duration::from_secs(1000));
    let waiting = tokio::spawn({
        let feed = feed.clone();
        async move { feed.changes(Cursor::START, 10, LONG * 10, pending()).await.unwrap() }
    });
    eventually(LONG, "the listener", async || listening(&fixture).await.then_some(())).await;
    let begun = Instant::now();
    fixture.member("m1", 1, "alice").await;
    fixture.propagate().await;
    let page = waiting.await.unwrap();
    assert_eq!((page.changes.len(), page.changes[0].operation), (1, Operation::Add));
    assert!(begun.elapsed() < LONG * 5);
    feeding.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_without_a_hint_wakes_who_waits_by_the_tick() {
    let fixture = Fixture::create().await;
    fixture.propagate().await;
    let (feed, feeding) = fed(&fixture, Duration::from_millis(50));
    let waiting = tokio::spawn({
        let feed = feed.clone();
        async move { feed.changes(Cursor::START, 10, LONG * 10, pending()).await.unwrap() }
    });
    eventually(LONG, "the listener", async || listening(&fixture).await.then_some(())).await;
    // A head that moves without a word.
    let move_it = "UPDATE ssh_access.site_feed SET head = 1, head_digest = sha256('x');
                   INSERT INTO ssh_access.site_change
                          (site, seq, operation, unix_user, key_id, member_id, enforce_by, digest, chain_digest)
                   VALUES ('north-1', 1, 'remove', 'alice', 'key_00000000000000000000000000', 'm',
                           clock_timestamp(), sha256('y'), sha256('x'))";
    fixture.sql().await.batch_execute(move_it).await.unwrap();
    let page = waiting.await.unwrap();
    assert_eq!(page.changes.len(), 1);
    feeding.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_spreads_a_change_of_another_site_tells_the_one_that_propagates_there() {
    let fixture = Fixture::create().await;
    fixture.add(&key("m1", 1)).await;
    fixture.registry(1).add_account(&site("south"), &member("m1"), &unix_user("al")).await.unwrap();
    let listener = Listener::new(&fixture.url(PROCESS_ROLE.name), "ssh_access_changed");
    let (tell, mut told) = mpsc::unbounded_channel();
    let listening = tokio::spawn(async move {
        listener
            .run(|hint| {
                let _ = tell.send(hint);
            })
            .await;
    });
    assert_eq!(told.recv().await, Some(Hint::Connected));
    assert_eq!(fixture.propagate().await, 0, "nothing of it is north's");
    assert!(matches!(timeout(LONG, told.recv()).await, Ok(Some(Hint::Payload(_)))));
    listening.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_empty_at_its_time_and_at_once_when_told() {
    let fixture = Fixture::create().await;
    let (feed, feeding) = fed(&fixture, Duration::from_secs(1));
    let wait = Duration::from_millis(300);
    let begun = Instant::now();
    let before = changes(&feed, Cursor::START).await;
    let page = feed.changes(Cursor::START, 10, wait, pending()).await.unwrap();
    assert!(page.changes.is_empty() && begun.elapsed() >= wait);
    let later = (page.lease_until - before.lease_until).to_std().unwrap();
    assert!(later >= wait, "the lease counts from the end of the wait: {later:?}");
    let (stop, stopped) = oneshot::channel::<()>();
    let waiting = tokio::spawn({
        let feed = feed.clone();
        async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            feed.changes(Cursor::START, 10, LONG * 10, stopped).await.unwrap()
        }
    });
    drop(stop);
    assert!(waiting.await.unwrap().changes.is_empty());
    feeding.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_waits_there_is_no_connection() {
    let fixture = Fixture::create().await;
    let (feed, feeding) = fed(&fixture, Duration::from_millis(50));
    let connections = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND usename = 'ssh_access_api'";
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.count(connections).await, 0);
    feed.changes(Cursor::START, 10, Duration::from_millis(100), pending()).await.unwrap();
    eventually(LONG, "the listener", async || listening(&fixture).await.then_some(())).await;
    feeding.abort();
}
