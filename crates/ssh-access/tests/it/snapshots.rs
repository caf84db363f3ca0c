//! What is in force, of one moment.

use std::collections::BTreeSet;

use ssh_access::{Cursor, KeyInForce};

use crate::support::{Fixture, applied, changes, key_until, snapshot};

#[tokio::test]
async fn an_empty_snapshot_is_a_snapshot() {
    let fixture = Fixture::create().await;
    let feed = fixture.feed();
    let mut snapshot = feed.snapshot().await.unwrap();
    assert_eq!(snapshot.head(), Cursor::START);
    assert!(snapshot.next().await.unwrap().is_none());
    assert!(snapshot.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_snapshot_is_sorted_as_bytes_and_says_what_the_changes_say() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 3, "ab").await;
    for (name, user) in [("m1", "a-b"), ("m1", "a"), ("m2", "a0"), ("m1", "b-"), ("m1", "a-")] {
        fixture.account(name, user).await;
    }
    let ending = fixture.add(&key_until("m2", 1, "2999-01-01T00:00:00.5Z")).await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let (set, head) = snapshot(&feed).await;
    assert_eq!((set.clone(), head), applied(&feed).await);
    let users: Vec<_> =
        set.iter().map(|(user, ..)| user.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(users, ["a", "a-", "a-b", "a0", "ab", "b-"]);
    assert!(set.is_sorted(), "{set:?}");
    let part = feed.snapshot().await.unwrap().next().await.unwrap().unwrap();
    let found: Vec<&KeyInForce> = part.iter().filter(|key| key.key_id == ending.id).collect();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].expires_at, &found[0].member), (ending.expires_at, &ending.member));
}

#[tokio::test]
async fn a_snapshot_stays_what_it_was_while_others_write() {
    let fixture = Fixture::create().await;
    // More than a part, and exactly two of them.
    let sql = fixture.sql().await;
    fixture.propagate().await;
    sql.batch_execute(
        "INSERT INTO ssh_access.site_key (site, unix_user, key_id, member_id, public_key)
         SELECT 'north-1', 'u' || lpad(n::text, 5, '0'), 'key_' || lpad(n::text, 25, '0') || '0',
                'm', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
           FROM generate_series(1, 2000) n",
    )
    .await
    .unwrap();
    let feed = fixture.feed();
    let mut held = feed.snapshot().await.unwrap();
    let first = held.next().await.unwrap().unwrap();
    assert_eq!(first.len(), 1000);
    let keys = fixture.member("m1", 1, "u01500x").await;
    sql.batch_execute("DELETE FROM ssh_access.site_key WHERE unix_user = 'u01900'").await.unwrap();
    fixture.propagate().await;
    let second = held.next().await.unwrap().unwrap();
    assert_eq!(second.len(), 1000);
    assert!(held.next().await.unwrap().is_none());
    assert!(second.iter().any(|key| key.unix_user.as_str() == "u01900"));
    assert!(second.iter().all(|key| key.key_id != keys[0].id));
    assert_eq!(held.head(), Cursor::START);
    // What comes after its place are the changes after its place.
    assert_eq!(changes(&feed, held.head()).await.changes[0].key_id, keys[0].id);
    assert_eq!(snapshot(&feed).await.0.len(), 2000);
}

#[tokio::test]
async fn a_snapshot_that_is_dropped_leaves_no_transaction_behind() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 1, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    for _ in 0..10 {
        // More than there are connections.
        drop(feed.snapshot().await.unwrap());
    }
    let open = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    test_support::eventually(crate::support::LONG, "the transactions to end", async || {
        (fixture.count(open).await == 0).then_some(())
    })
    .await;
    // One that was read to its end has given its connection back.
    for _ in 0..10 {
        assert_eq!(snapshot(&feed).await.0.len(), 1);
    }
    let connections = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND usename = 'ssh_access_api'";
    assert_eq!(fixture.count(connections).await, 1);
}
