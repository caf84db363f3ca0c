//! A feed loses its beginning.

use std::{future::pending, time::Duration};

use ssh_access::{
    AcknowledgeError, Acknowledgement, ChangesError, Cursor, Failures, Feed, PropagatorLimits,
};

use crate::support::{Fixture, changes, snapshot};

const DAY: Duration = Duration::from_secs(86_400);

async fn acknowledge(feed: &Feed, cursor: Cursor) {
    let acknowledgement = Acknowledgement {
        cursor,
        chain_digest: cursor.digest(),
        set_digest: None,
        failures: Failures::default(),
    };
    feed.acknowledge(&acknowledgement).await.unwrap();
}

pub(crate) async fn compact(
    fixture: &Fixture,
    acknowledged_for: Duration,
    any_for: Duration,
) -> u64 {
    let limits = PropagatorLimits { acknowledged_for, any_for, ..PropagatorLimits::default() };
    let propagator = fixture.propagator_of("north-1", limits);
    let lease = propagator.acquire().await.unwrap().unwrap();
    let gone = propagator.compact(lease).await.unwrap();
    propagator.release(lease).await.unwrap();
    gone
}

#[tokio::test]
async fn what_is_acknowledged_and_old_goes_and_the_rest_stays() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 4, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let place = async |limit| {
        feed.changes(Cursor::START, limit, Duration::ZERO, pending()).await.unwrap().next
    };
    let (one, two, head) = (place(1).await, place(2).await, place(4).await);
    assert_eq!(compact(&fixture, Duration::ZERO, DAY).await, 0, "nothing is acknowledged");
    acknowledge(&feed, two).await;
    assert_eq!(compact(&fixture, DAY, DAY).await, 0, "nothing is old");
    assert_eq!(compact(&fixture, Duration::ZERO, DAY).await, 2);
    for gone in [Cursor::START, one] {
        let refusal = feed.changes(gone, 10, Duration::ZERO, pending()).await.unwrap_err();
        assert!(matches!(refusal, ChangesError::Compacted), "{refusal:?}");
    }
    assert_eq!(changes(&feed, two).await.changes.len(), 2, "the floor itself is a place");
    acknowledge(&feed, two).await;
    let other = Cursor::new(2, head.digest()).unwrap();
    let refusal = feed.changes(other, 10, Duration::ZERO, pending()).await.unwrap_err();
    assert!(matches!(refusal, ChangesError::Unknown), "{refusal:?}");
    assert_eq!(snapshot(&feed).await, (snapshot(&feed).await.0, head));
    acknowledge(&feed, head).await;
    assert_eq!(compact(&fixture, Duration::ZERO, DAY).await, 2);
    assert_eq!(changes(&feed, head).await.next, head, "the head stays a place");
    // The chain goes on from there.
    fixture.member("m2", 1, "bob").await;
    fixture.propagate().await;
    let page = changes(&feed, head).await;
    assert_eq!(Some(page.next), head.after(page.changes[0].digest));
}

#[tokio::test]
async fn what_is_very_old_goes_also_where_the_agent_is_silent() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 3, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let head = changes(&feed, Cursor::START).await.head;
    let one = feed.changes(Cursor::START, 1, Duration::ZERO, pending()).await.unwrap().next;
    let older = "UPDATE ssh_access.site_change SET created_at = created_at - interval '2 days'
                  WHERE seq <= 2";
    fixture.sql().await.batch_execute(older).await.unwrap();
    assert_eq!(compact(&fixture, DAY, DAY).await, 2);
    let refusal = feed.changes(Cursor::START, 10, Duration::ZERO, pending()).await.unwrap_err();
    assert!(matches!(refusal, ChangesError::Compacted), "{refusal:?}");
    // Such an agent can't acknowledge what can't be checked; after a snapshot it can.
    let acknowledgement = Acknowledgement {
        cursor: one,
        chain_digest: one.digest(),
        set_digest: None,
        failures: Failures::default(),
    };
    let refusal = feed.acknowledge(&acknowledgement).await.unwrap_err();
    assert!(matches!(refusal, AcknowledgeError::Compacted), "{refusal:?}");
    acknowledge(&feed, head).await;
    // From then on an older one is only answered with what is stored.
    assert_eq!(feed.acknowledge(&acknowledgement).await.unwrap().cursor, head);
}

#[tokio::test]
async fn it_stops_before_the_first_change_that_has_to_stay() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 4, "alice").await;
    fixture.propagate().await;
    let older = "UPDATE ssh_access.site_change SET created_at = created_at - interval '2 days'
                  WHERE seq <> 2";
    fixture.sql().await.batch_execute(older).await.unwrap();
    assert_eq!(compact(&fixture, DAY, DAY).await, 1);
    assert_eq!(fixture.count("SELECT min(seq) FROM ssh_access.site_change").await, 2);
    assert_eq!(fixture.count("SELECT floor FROM ssh_access.site_feed").await, 1);
}
