//! How far the agent is, and what is told of it.

use std::time::Duration;

use ssh_access::{
    Acknowledgement, Attested, Cursor, Digest, Failure, Failures, Feed, Outbox, PROCESS_ROLE,
    PropagatorLimits, Watched,
};

use crate::{
    compaction::compact,
    support::{Fixture, changes, here, member, set_digest, site, snapshot, unix_user},
};

pub(crate) async fn watch(fixture: &Fixture) -> Watched {
    let propagator = fixture.propagator_of("north-1", PropagatorLimits::default());
    let lease = propagator.acquire().await.unwrap().unwrap();
    let watched = propagator.watch(lease).await.unwrap();
    propagator.release(lease).await.unwrap();
    watched
}

pub(crate) async fn acknowledge(
    feed: &Feed,
    cursor: Cursor,
    set: Option<Digest>,
    failures: Failures,
) {
    let chain_digest = cursor.digest();
    let acknowledgement = Acknowledgement { cursor, chain_digest, set_digest: set, failures };
    feed.acknowledge(&acknowledgement).await.unwrap();
}

/// Lets the time of every removal be over.
async fn let_time_pass(fixture: &Fixture) {
    let past = "UPDATE ssh_access.site_change SET enforce_by = clock_timestamp() - interval '1 s'
                 WHERE operation = 'remove'";
    fixture.sql().await.batch_execute(past).await.unwrap();
}

pub(crate) async fn events(fixture: &Fixture) -> Vec<(u64, String)> {
    let outbox = Outbox::new(fixture.pool(PROCESS_ROLE.name, 1), here());
    let events = outbox.next(0, 100).await.unwrap();
    assert!(events.iter().all(|event| event.data.contains("\"north-1\"")), "{events:?}");
    events.into_iter().map(|event| (event.seq, event.kind)).collect()
}

#[tokio::test]
async fn an_agent_that_never_came_is_seen() {
    let fixture = Fixture::create().await;
    let watched = watch(&fixture).await;
    let nothing = Watched {
        head: 0,
        acknowledged: None,
        silent_for: None,
        removals_overdue: 0,
        failing: 0,
        attested: None,
        waiting_for: None,
        events: 0,
    };
    assert_eq!(watched, nothing);
    assert_eq!(events(&fixture).await, []);
}

#[tokio::test]
async fn a_removal_is_overdue_when_its_time_is_over_and_nobody_acknowledged_it() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 3, "alice").await;
    fixture.propagate().await;
    fixture.remove(&keys[0].id).await;
    fixture.remove(&keys[1].id).await;
    fixture.propagate().await;
    let watched = watch(&fixture).await;
    assert_eq!((watched.head, watched.removals_overdue), (5, 0), "its time is not over");
    let_time_pass(&fixture).await;
    for _ in 0..2 {
        assert_eq!(watch(&fixture).await.removals_overdue, 2);
    }
    let overdue = (1, "ssh.removals.overdue".to_owned());
    assert_eq!(events(&fixture).await, std::slice::from_ref(&overdue), "it is told once");
    let feed = fixture.feed();
    let page = changes(&feed, Cursor::START).await;
    let fourth = Cursor::new(4, {
        let mut cursor = Cursor::START;
        for change in &page.changes[..4] {
            cursor = cursor.after(change.digest).unwrap();
        }
        cursor.digest()
    });
    acknowledge(&feed, fourth.unwrap(), None, Failures::default()).await;
    let watched = watch(&fixture).await;
    assert_eq!((watched.removals_overdue, watched.acknowledged), (1, Some(4)));
    assert_eq!(events(&fixture).await, std::slice::from_ref(&overdue));
    acknowledge(&feed, page.head, None, Failures::default()).await;
    let watched = watch(&fixture).await;
    assert_eq!((watched.removals_overdue, watched.acknowledged), (0, Some(5)));
    assert!(watched.silent_for.unwrap() < Duration::from_secs(60));
    assert_eq!(events(&fixture).await, [overdue, (2, "ssh.removals.enforced".to_owned())]);
}

#[tokio::test]
async fn a_removal_that_the_agent_could_not_apply_is_overdue_though_it_was_acknowledged() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 2, "alice").await;
    fixture.propagate().await;
    fixture.remove(&keys[0].id).await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let head = changes(&feed, Cursor::START).await.head;
    let failing = |id: &ssh_access::KeyId| {
        let failure = Failure::new(unix_user("alice"), id.clone(), "the folder is full").unwrap();
        Failures::new(vec![failure]).unwrap()
    };
    acknowledge(&feed, head, None, failing(&keys[0].id)).await;
    let watched = watch(&fixture).await;
    assert_eq!((watched.removals_overdue, watched.failing), (0, 1), "its time is not over");
    let_time_pass(&fixture).await;
    assert_eq!(watch(&fixture).await.removals_overdue, 1);
    // Also once the change itself is gone from the feed.
    let gone = "UPDATE ssh_access.site_feed SET floor = head, floor_digest = head_digest;
                DELETE FROM ssh_access.site_change";
    fixture.sql().await.batch_execute(gone).await.unwrap();
    assert_eq!(watch(&fixture).await.removals_overdue, 1);
    // An addition that failed keeps nobody in.
    acknowledge(&feed, head, None, failing(&keys[1].id)).await;
    let watched = watch(&fixture).await;
    assert_eq!((watched.removals_overdue, watched.failing), (0, 1));
    acknowledge(&feed, head, None, Failures::default()).await;
    assert_eq!(watch(&fixture).await.failing, 0);
}

/// As if the agent had been silent for longer than any change is kept.
async fn compact_all(fixture: &Fixture) -> u64 {
    compact(fixture, Duration::ZERO, Duration::ZERO).await
}

#[tokio::test]
async fn where_nothing_was_overdue_nothing_is_when_changes_are_gone() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 1, "alice").await;
    fixture.propagate().await;
    assert_eq!(watch(&fixture).await.removals_overdue, 0);
    assert_eq!(compact_all(&fixture).await, 1);
    assert_eq!(watch(&fixture).await.removals_overdue, 0);
}

#[tokio::test]
async fn a_removal_that_was_overdue_is_so_until_it_is_acknowledged_also_without_its_change() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 1, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    acknowledge(&feed, changes(&feed, Cursor::START).await.head, None, Failures::default()).await;
    fixture.remove(&keys[0].id).await;
    fixture.propagate().await;
    let_time_pass(&fixture).await;
    assert_eq!(watch(&fixture).await.removals_overdue, 1);
    let head = changes(&feed, Cursor::START).await.head;
    assert_eq!(compact_all(&fixture).await, 2);
    let overdue = (1, "ssh.removals.overdue".to_owned());
    for _ in 0..2 {
        assert_eq!(watch(&fixture).await.removals_overdue, 1);
        assert_eq!(events(&fixture).await, std::slice::from_ref(&overdue));
    }
    acknowledge(&feed, head, None, Failures::default()).await;
    assert_eq!(watch(&fixture).await.removals_overdue, 0);
    assert_eq!(events(&fixture).await, [overdue, (2, "ssh.removals.enforced".to_owned())]);
}

#[tokio::test]
async fn the_silence_of_an_agent_ends_when_it_acknowledges_the_same_place_again() {
    let fixture = Fixture::create().await;
    let feed = fixture.feed();
    acknowledge(&feed, Cursor::START, None, Failures::default()).await;
    let older = "UPDATE ssh_access.site_ack SET acknowledged_at = acknowledged_at - interval '1 h'";
    fixture.sql().await.batch_execute(older).await.unwrap();
    let silent_for = async || watch(&fixture).await.silent_for.unwrap();
    assert!(silent_for().await >= Duration::from_secs(3600));
    acknowledge(&feed, Cursor::START, None, Failures::default()).await;
    assert!(silent_for().await < Duration::from_secs(60));
}

#[tokio::test]
async fn a_set_that_differs_is_told_once_and_so_is_that_it_is_right_again() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 2, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let (set, head) = snapshot(&feed).await;
    acknowledge(&feed, head, Some(set_digest(&set[1..])), Failures::default()).await;
    for events in [1, 0] {
        let watched = watch(&fixture).await;
        assert_eq!((watched.attested, watched.events), (Some(Attested::Mismatch), events));
    }
    let mismatched = (1, "ssh.set.mismatched".to_owned());
    assert_eq!(events(&fixture).await, std::slice::from_ref(&mismatched));
    acknowledge(&feed, head, Some(set_digest(&set)), Failures::default()).await;
    assert_eq!(watch(&fixture).await.attested, Some(Attested::Match));
    assert_eq!(events(&fixture).await, [mismatched, (2, "ssh.set.matched".to_owned())]);
}

#[tokio::test]
async fn what_waits_is_seen_with_its_age() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 1, "alice").await;
    fixture.propagate_at("south").await;
    let older = "UPDATE ssh_access.pending_member SET since = since - interval '90 s'";
    fixture.sql().await.batch_execute(older).await.unwrap();
    let waiting = watch(&fixture).await.waiting_for.unwrap();
    assert!((90..120).contains(&waiting.as_secs()), "{waiting:?}");
    fixture.propagate().await;
    assert_eq!(watch(&fixture).await.waiting_for, None);
    // What waits for another Site does not wait here.
    let (m1, al) = (member("m1"), unix_user("al"));
    fixture.registry(1).add_account(&site("south"), &m1, &al).await.unwrap();
    fixture.propagate().await;
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.pending_member").await, 1);
    assert_eq!(watch(&fixture).await.waiting_for, None);
}
