//! How far the agent is, and what is told of it.

use std::time::Duration;

use ssh_access::{
    Acknowledgement, Attested, Cursor, Digest, Failure, Failures, Feed, Outbox, PROCESS_ROLE,
    PropagateError, PropagatorLimits, Watched,
};

use crate::support::{Fixture, changes, here, set_digest, site, snapshot, unix_user};

async fn watch(fixture: &Fixture) -> Watched {
    let propagator = fixture.propagator_of("north-1", PropagatorLimits::default());
    let lease = propagator.acquire().await.unwrap().unwrap();
    let watched = propagator.watch(lease).await.unwrap();
    propagator.release(lease).await.unwrap();
    watched
}

async fn acknowledge(feed: &Feed, cursor: Cursor, set: Option<Digest>, failures: Failures) {
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

async fn events(fixture: &Fixture) -> Vec<(u64, String)> {
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
    // The agent is silent for longer than a change is kept.
    let limits = PropagatorLimits { any_for: Duration::ZERO, ..PropagatorLimits::default() };
    let propagator = fixture.propagator_of("north-1", limits);
    let lease = propagator.acquire().await.unwrap().unwrap();
    assert_eq!(propagator.compact(lease).await.unwrap(), 2);
    propagator.release(lease).await.unwrap();
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
}

/// Writes three events: the set of the agent differs, is right, and differs again.
async fn three_events(fixture: &Fixture) {
    fixture.member("m1", 1, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let head = changes(&feed, Cursor::START).await.head;
    for set in [Digest::ZERO, set_digest(&snapshot(&feed).await.0), Digest::ZERO] {
        acknowledge(&feed, head, Some(set), Failures::default()).await;
        watch(fixture).await;
    }
    assert_eq!(events(fixture).await.len(), 3);
}

#[tokio::test]
async fn the_outbox_goes_on_where_its_relay_was() {
    let fixture = Fixture::create().await;
    let outbox = Outbox::new(fixture.pool(PROCESS_ROLE.name, 1), here());
    assert_eq!(outbox.position().await.unwrap(), 0);
    three_events(&fixture).await;
    assert_eq!(outbox.position().await.unwrap(), 0);
    outbox.published(2).await.unwrap();
    outbox.published(1).await.unwrap();
    assert_eq!(outbox.position().await.unwrap(), 2);
    assert_eq!(outbox.next(2, 10).await.unwrap().len(), 1);
    // Another Site has its own.
    let south = Outbox::new(fixture.pool(PROCESS_ROLE.name, 1), site("south"));
    assert_eq!(south.next(0, 10).await.unwrap(), []);
}

#[tokio::test]
async fn old_events_go_but_for_those_that_a_relay_has_still_to_publish() {
    let fixture = Fixture::create().await;
    three_events(&fixture).await;
    let day = Duration::from_secs(86_400);
    let prune = async || {
        let limits = PropagatorLimits { events_for: day, ..PropagatorLimits::default() };
        let propagator = fixture.propagator_of("north-1", limits);
        let lease = propagator.acquire().await.unwrap().unwrap();
        let gone = propagator.prune_events(lease).await.unwrap();
        propagator.release(lease).await.unwrap();
        gone
    };
    let age = async |events: &str| {
        let older = format!(
            "UPDATE ssh_access.event SET occurred_at = occurred_at - interval '25 hours'
              WHERE {events}"
        );
        fixture.sql().await.batch_execute(&older).await.unwrap();
    };
    assert_eq!(prune().await, 0, "nothing is old");
    age("seq = 1").await;
    assert_eq!(prune().await, 1);
    // The relay that comes now begins with what is left, and holds it.
    let outbox = Outbox::new(fixture.pool(PROCESS_ROLE.name, 1), here());
    assert_eq!(outbox.position().await.unwrap(), 1);
    age("seq > 1").await;
    assert_eq!(prune().await, 0);
    outbox.published(2).await.unwrap();
    assert_eq!(prune().await, 1);
    assert_eq!(events(&fixture).await, [(3, "ssh.set.mismatched".to_owned())]);
    outbox.published(3).await.unwrap();
    assert_eq!(prune().await, 1);
    assert_eq!(outbox.position().await.unwrap(), 3);
}

/// The second event is young: what comes after it stays too, so that no gap appears.
#[tokio::test]
async fn events_go_from_the_oldest_on() {
    let fixture = Fixture::create().await;
    three_events(&fixture).await;
    let older = "UPDATE ssh_access.event SET occurred_at = occurred_at - interval '500 days'
                  WHERE seq <> 2";
    fixture.sql().await.batch_execute(older).await.unwrap();
    let propagator = fixture.propagator();
    let lease = propagator.acquire().await.unwrap().unwrap();
    assert_eq!(propagator.prune_events(lease).await.unwrap(), 1);
    let left: Vec<_> = events(&fixture).await.into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(left, [2, 3]);
    propagator.release(lease).await.unwrap();
    let lost = propagator.prune_events(lease).await;
    assert!(matches!(lost, Err(PropagateError::LeaseLost)), "{lost:?}");
}
