//! The events of a Site, until they are published and old.

use std::time::Duration;

use ssh_access::{
    Cursor, Digest, Failures, Outbox, PROCESS_ROLE, PropagateError, PropagatorLimits,
};

use crate::{
    support::{Fixture, changes, here, set_digest, site, snapshot},
    watching::{acknowledge, events, watch},
};

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
