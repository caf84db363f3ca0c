//! Somebody writes while another one changes or writes the same.

use std::sync::Arc;

use ssh_access::PropagateError;

use crate::support::{Fixture, LONG, applied};

/// Waits until somebody waits for the row of the lease, with what he has computed.
async fn stopped_where_it_writes(fixture: &Fixture) {
    stopped_where_they_write(fixture, 1).await;
}

async fn stopped_where_they_write(fixture: &Fixture, writers: i64) {
    let waits = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND wait_event_type = 'Lock'";
    test_support::eventually(LONG, "the lock to be waited for", async || {
        (fixture.count(waits).await == writers).then_some(())
    })
    .await;
}

const LOCK_THE_LEASE: &str = "SELECT FROM ssh_access.propagator_lease FOR UPDATE";

#[tokio::test]
async fn a_change_that_comes_while_somebody_looks_is_looked_at_again() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 2, "alice").await;
    fixture.propagate().await;
    // Somebody has spread the first removal, and looks; he is stopped where he writes.
    fixture.remove(&keys[0].id).await;
    let mut stopper = fixture.sql().await;
    let transaction = stopper.transaction().await.unwrap();
    let propagator = fixture.propagator();
    let lease = propagator.acquire().await.unwrap().unwrap();
    transaction.batch_execute(LOCK_THE_LEASE).await.unwrap();
    let looking = tokio::spawn(async move { propagator.propagate(lease).await });
    stopped_where_it_writes(&fixture).await;
    // Meanwhile the second goes, and is spread by another.
    fixture.remove(&keys[1].id).await;
    fixture.propagate_at("south").await;
    transaction.commit().await.unwrap();
    assert_eq!(looking.await.unwrap().unwrap(), 2);
    let (set, _) = applied(&fixture.feed()).await;
    assert_eq!(set, []);
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.pending_member").await, 0);
}

/// The same, of a change that got its number before the one that is looked at, and is committed after.
#[tokio::test]
async fn a_change_that_is_committed_late_is_looked_at_though_its_number_is_lower() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 2, "alice").await;
    fixture.propagate().await;
    let mut late = fixture.sql().await;
    let removing = late.transaction().await.unwrap();
    let remove = include_str!("../../src/sql/remove_account.sql");
    assert_eq!(removing.query(remove, &[&"north-1", &"alice"]).await.unwrap().len(), 1);
    fixture.remove(&keys[0].id).await;
    let mut stopper = fixture.sql().await;
    let transaction = stopper.transaction().await.unwrap();
    let propagator = fixture.propagator();
    let lease = propagator.acquire().await.unwrap().unwrap();
    transaction.batch_execute(LOCK_THE_LEASE).await.unwrap();
    let looking = tokio::spawn(async move { propagator.propagate(lease).await });
    stopped_where_it_writes(&fixture).await;
    removing.commit().await.unwrap();
    fixture.propagate_at("south").await;
    transaction.commit().await.unwrap();
    assert_eq!(looking.await.unwrap().unwrap(), 2, "the key, and then the account");
    assert_eq!(applied(&fixture.feed()).await.0, []);
}

/// Nobody should do so; the head that was read is compared even so.
#[tokio::test]
async fn of_two_who_write_at_once_with_one_lease_one_writes_and_the_other_nothing() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 2, "alice").await;
    let mut stopper = fixture.sql().await;
    let transaction = stopper.transaction().await.unwrap();
    let propagator = Arc::new(fixture.propagator());
    let lease = propagator.acquire().await.unwrap().unwrap();
    transaction.batch_execute(LOCK_THE_LEASE).await.unwrap();
    let writers = [(); 2].map(|()| {
        let propagator = Arc::clone(&propagator);
        tokio::spawn(async move { propagator.propagate(lease).await })
    });
    stopped_where_they_write(&fixture, 2).await;
    transaction.commit().await.unwrap();
    let mut written = Vec::new();
    for writer in writers {
        match writer.await.unwrap() {
            Ok(count) => written.push(count),
            Err(PropagateError::LeaseLost) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(written, [keys.len() as u64]);
    assert_eq!(applied(&fixture.feed()).await.0.len(), keys.len());
}
