//! Changes after a cursor.

use std::{future::pending, time::Duration};

use chrono::TimeDelta;
use ssh_access::{ChangesError, Cursor, Digest, Feed, PropagatorLimits, Window};

use crate::support::{Fixture, applied, changes, here, key, unix_user};

#[tokio::test]
async fn a_site_without_anything_has_an_empty_feed() {
    let fixture = Fixture::create().await;
    let page = changes(&fixture.feed(), Cursor::START).await;
    assert_eq!((page.changes.len(), page.next, page.head), (0, Cursor::START, Cursor::START));
}

#[tokio::test]
async fn the_same_cursor_gives_the_same_changes_and_a_limit_cuts_them() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 5, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let whole = changes(&feed, Cursor::START).await;
    let again = changes(&feed, Cursor::START).await;
    assert_eq!((&whole.changes, whole.next), (&again.changes, again.next));
    let mut cursor = Cursor::START;
    for place in 0..5 {
        let part = feed.changes(cursor, 1, Duration::ZERO, pending()).await.unwrap();
        assert_eq!(part.changes, whole.changes[place..=place]);
        assert_eq!(part.head, whole.head);
        cursor = part.next;
    }
    assert_eq!(cursor, whole.head);
    // Neither nothing nor more than is allowed.
    for (limit, expected) in [(0, 1), (u16::MAX, 5)] {
        let page = feed.changes(Cursor::START, limit, Duration::ZERO, pending()).await.unwrap();
        assert_eq!(page.changes.len(), expected);
    }
}

#[tokio::test]
async fn a_feed_of_more_than_a_page_is_read_page_by_page() {
    let fixture = Fixture::create().await;
    for number in 0..32 {
        fixture.member(&format!("m{number}"), 32, &format!("u{number}")).await;
    }
    assert_eq!(fixture.propagate().await, 1024);
    let feed = fixture.feed();
    assert_eq!(changes(&feed, Cursor::START).await.changes.len(), 1000);
    assert_eq!(applied(&feed).await.0.len(), 1024);
}

#[tokio::test]
async fn a_cursor_of_another_history_is_refused() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 3, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let page = changes(&feed, Cursor::START).await;
    let second = changes(&feed, page.next).await.next;
    assert_eq!(second, page.head);
    let middle = feed.changes(Cursor::START, 2, Duration::ZERO, pending()).await.unwrap().next;
    let other = Digest::from_bytes([7; 32]);
    for wrong in [
        Cursor::new(2, other).unwrap(),
        Cursor::new(3, other).unwrap(),
        Cursor::new(2, page.head.digest()).unwrap(),
        Cursor::new(4, page.head.digest()).unwrap(),
        Cursor::new(i64::MAX, other).unwrap(),
    ] {
        let refusal = feed.changes(wrong, 10, Duration::ZERO, pending()).await.unwrap_err();
        assert!(matches!(refusal, ChangesError::Unknown), "{wrong}: {refusal:?}");
    }
    assert_eq!(changes(&feed, middle).await.changes.len(), 1);
    // The feed of a database that was restored is shorter.
    let south = fixture.feed_of("south", Window::DEFAULT);
    let refusal = south.changes(middle, 10, Duration::ZERO, pending()).await.unwrap_err();
    assert!(matches!(refusal, ChangesError::Unknown), "{refusal:?}");
}

async fn lease(feed: &Feed) -> TimeDelta {
    let page = changes(feed, Cursor::START).await;
    page.lease_until - page.read_at
}

#[tokio::test]
async fn a_lease_is_the_shorter_window_less_the_skew() {
    let fixture = Fixture::create().await;
    let window = |seconds: &str| Window::parse(seconds).unwrap();
    let seconds = TimeDelta::seconds;
    // Before the process has said anything, the window of who answers.
    assert_eq!(lease(&fixture.feed_of("north-1", window("3600"))).await, seconds(3540));
    fixture.propagate().await;
    assert_eq!(lease(&fixture.feed_of("north-1", window("3600"))).await, seconds(540));
    assert_eq!(lease(&fixture.feed_of("north-1", window("60"))).await, seconds(54));
    assert_eq!(lease(&fixture.feed_of("north-1", window("100"))).await, seconds(90));
    // Of the process it is the window of whoever took the lease last.
    for (process, left) in [("300", 270), ("900", 840)] {
        let limits = PropagatorLimits::default();
        let propagator = fixture.propagator_with("north-1", window(process), limits);
        let taken = propagator.acquire().await.unwrap().unwrap();
        propagator.release(taken).await.unwrap();
        assert_eq!(lease(&fixture.feed_of("north-1", window("3600"))).await, seconds(left));
    }
}

#[tokio::test]
async fn while_something_waits_to_be_propagated_no_lease_goes_on() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 1, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    assert_eq!(lease(&feed).await, TimeDelta::seconds(540));
    // A removal that nobody propagates: each reading is later, and the end of the lease stays.
    let removed = fixture.remove(&keys[0].id).await;
    let skew = TimeDelta::seconds(1);
    let mut ends = Vec::new();
    for _ in 0..3 {
        let page = changes(&feed, Cursor::START).await;
        assert!(page.lease_until - page.read_at < TimeDelta::seconds(540));
        assert_eq!(page.waits_since, Some(page.lease_until - TimeDelta::seconds(540)));
        let until = removed.removed_at.unwrap() + TimeDelta::seconds(540);
        assert!((page.lease_until - until).abs() < skew, "{} {until}", page.lease_until);
        ends.push(page.lease_until);
    }
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    // The same where it was spread, and not yet written, and in a snapshot.
    fixture.propagate_at("south").await;
    assert_eq!(changes(&feed, Cursor::START).await.lease_until, ends[0]);
    assert_eq!(feed.snapshot().await.unwrap().lease_until(), ends[0]);
    // A later change does not move it.
    fixture.add(&key("m1", 9)).await;
    fixture.propagate_at("south").await;
    assert_eq!(changes(&feed, Cursor::START).await.lease_until, ends[0]);
    fixture.propagate().await;
    assert_eq!(lease(&feed).await, TimeDelta::seconds(540));
}

#[tokio::test]
async fn of_several_changes_of_a_member_the_oldest_holds_the_lease() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 2, "alice").await;
    fixture.propagate().await;
    let removed = fixture.remove(&keys[0].id).await.removed_at.unwrap();
    let older = "UPDATE ssh_access.changed_member SET changed_at = changed_at - interval '100 s'";
    fixture.sql().await.batch_execute(older).await.unwrap();
    fixture.remove(&keys[1].id).await;
    fixture.propagate_at("south").await;
    let until = changes(&fixture.feed(), Cursor::START).await.lease_until;
    let expected = removed - TimeDelta::seconds(100) + TimeDelta::seconds(540);
    assert!((until - expected).abs() < TimeDelta::seconds(1), "{until} {expected}");
}

#[tokio::test]
async fn what_waits_for_another_site_is_nothing_to_this_one() {
    let fixture = Fixture::create().await;
    fixture.add(&key("m1", 1)).await;
    fixture.account("m1", "alice").await;
    let feed = fixture.feed_of("south", Window::DEFAULT);
    assert!(lease(&feed).await < TimeDelta::seconds(540));
    // As soon as it is known whom it concerns.
    fixture.propagate_at("south").await;
    assert_eq!(lease(&feed).await, TimeDelta::seconds(540));
    let registry = fixture.registry(1);
    registry.remove_account(&here(), &unix_user("alice")).await.unwrap();
}
