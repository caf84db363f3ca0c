//! Who may propagate.

use std::time::Duration;

use ssh_access::{PropagateError, PropagatorLimits};
use tokio::time::Instant;

use crate::support::{Fixture, LONG, applied, key};

/// Ends every lease now, as if its time were over.
const END: &str =
    "UPDATE ssh_access.propagator_lease SET expires_at = clock_timestamp() - interval '1 ms'";

#[tokio::test]
async fn of_two_one_has_the_lease_until_it_gives_it_back() {
    let fixture = Fixture::create().await;
    let (one, other) = (fixture.propagator(), fixture.propagator());
    let first = one.acquire().await.unwrap().unwrap();
    assert_eq!(other.acquire().await.unwrap(), None);
    one.renew(first).await.unwrap();
    one.release(first).await.unwrap();
    let second = other.acquire().await.unwrap().unwrap();
    assert!(second.fence() > first.fence());
    let refusal = one.renew(first).await.unwrap_err();
    assert!(matches!(refusal, PropagateError::LeaseLost), "{refusal:?}");
    // Giving back what is not ours changes nothing.
    one.release(first).await.unwrap();
    other.renew(second).await.unwrap();
}

#[tokio::test]
async fn a_lease_that_has_expired_is_not_renewed_also_where_nobody_took_it() {
    let fixture = Fixture::create().await;
    let propagator = fixture.propagator();
    let lease = propagator.acquire().await.unwrap().unwrap();
    fixture.sql().await.batch_execute(END).await.unwrap();
    let refusal = propagator.renew(lease).await.unwrap_err();
    assert!(matches!(refusal, PropagateError::LeaseLost), "{refusal:?}");
    let again = propagator.acquire().await.unwrap().unwrap();
    assert!(again.fence() > lease.fence());
}

#[tokio::test]
async fn each_site_has_a_lease_of_its_own() {
    let fixture = Fixture::create().await;
    let limits = PropagatorLimits::default();
    let (one, other) = (fixture.propagator(), fixture.propagator_of("south", limits));
    assert!(one.acquire().await.unwrap().is_some());
    assert!(other.acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn who_asks_again_gets_it_again_and_what_was_sent_before_no_longer_counts() {
    let fixture = Fixture::create().await;
    let propagator = fixture.propagator();
    let first = propagator.acquire().await.unwrap().unwrap();
    let second = propagator.acquire().await.unwrap().unwrap();
    assert!(second.fence() > first.fence());
    fixture.member("m1", 1, "alice").await;
    let refusal = propagator.propagate(first).await.unwrap_err();
    assert!(matches!(refusal, PropagateError::LeaseLost), "{refusal:?}");
    assert_eq!(propagator.propagate(second).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_holder_whose_lease_was_taken_writes_nothing() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 2, "alice").await;
    let (paused, other) = (fixture.propagator(), fixture.propagator());
    let old = paused.acquire().await.unwrap().unwrap();
    // It has computed what to write, and waits for the lease's row while another takes it.
    let mut taker = fixture.sql().await;
    let taking = taker.transaction().await.unwrap();
    taking
        .batch_execute("UPDATE ssh_access.propagator_lease SET fence = fence + 1, holder = 'other'")
        .await
        .unwrap();
    let writing = tokio::spawn(async move { (paused.propagate(old).await, paused, old) });
    let waits = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND wait_event_type = 'Lock'";
    test_support::eventually(LONG, "the write to wait", async || {
        (fixture.count(waits).await == 1).then_some(())
    })
    .await;
    taking.commit().await.unwrap();
    let (refusal, paused, old) = writing.await.unwrap();
    assert!(matches!(refusal, Err(PropagateError::LeaseLost)), "{refusal:?}");
    for count in ["site_change", "site_key"] {
        assert_eq!(fixture.count(&format!("SELECT count(*) FROM ssh_access.{count}")).await, 0);
    }
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.pending_member").await, 1);
    // Nor does it take anything away, or tell anything.
    for refusal in [
        paused.compact(old).await.map(drop),
        paused.watch(old).await.map(drop),
        paused.prune_events(old).await.map(drop),
    ] {
        assert!(matches!(refusal, Err(PropagateError::LeaseLost)), "{refusal:?}");
    }
    fixture.sql().await.batch_execute(END).await.unwrap();
    let lease = other.acquire().await.unwrap().unwrap();
    assert_eq!(other.propagate(lease).await.unwrap(), 2);
    assert_eq!(applied(&fixture.feed()).await.0.len(), keys.len());
}

#[tokio::test]
async fn a_propagation_that_takes_long_keeps_its_lease() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 1, "alice").await;
    let term = Duration::from_secs(9);
    let limits = PropagatorLimits { lease: term, ..PropagatorLimits::default() };
    let propagator = fixture.propagator_of("north-1", limits);
    let begun = Instant::now();
    let lease = propagator.acquire().await.unwrap().unwrap();
    let ends = "SELECT (extract(epoch FROM expires_at) * 1000)::bigint
                  FROM ssh_access.propagator_lease";
    let first = fixture.count(ends).await;
    // It is kept from writing for as long as after which a lease is renewed.
    let mut stopper = fixture.sql().await;
    let stopping = stopper.transaction().await.unwrap();
    stopping.batch_execute("SELECT FROM ssh_access.propagator_lease FOR UPDATE").await.unwrap();
    let propagating = tokio::spawn(async move { propagator.propagate(lease).await });
    test_support::eventually(LONG, "a third of the term", async || {
        (begun.elapsed() > term / 3 + Duration::from_millis(200)).then_some(())
    })
    .await;
    stopping.commit().await.unwrap();
    assert_eq!(propagating.await.unwrap().unwrap(), 1);
    assert!(fixture.count(ends).await - first >= 3000, "it was renewed");
}

#[tokio::test]
async fn a_lease_whose_time_is_over_writes_nothing_though_nobody_took_it() {
    let fixture = Fixture::create().await;
    let propagator = fixture.propagator();
    let lease = propagator.acquire().await.unwrap().unwrap();
    fixture.sql().await.batch_execute(END).await.unwrap();
    fixture.add(&key("m1", 1)).await;
    fixture.account("m1", "alice").await;
    let refusal = propagator.propagate(lease).await.unwrap_err();
    assert!(matches!(refusal, PropagateError::LeaseLost), "{refusal:?}");
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.site_change").await, 0);
    // Nor does it take anything away, or tell anything.
    for refusal in [
        propagator.compact(lease).await.map(drop),
        propagator.watch(lease).await.map(drop),
        propagator.prune_events(lease).await.map(drop),
    ] {
        assert!(matches!(refusal, Err(PropagateError::LeaseLost)), "{refusal:?}");
    }
}
