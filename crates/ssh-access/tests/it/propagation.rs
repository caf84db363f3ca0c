//! From keys and accounts to what is in force.

use chrono::{DateTime, TimeDelta, Utc};
use ssh_access::{Change, Cursor, KeyEnd, NewKey, Operation, Window};
use test_support::Random;

use crate::support::{
    Fixture, applied, changes, here, key, key_until, member, random, site, snapshot, unix_user,
    words,
};

fn ids(keys: &[ssh_access::StoredKey]) -> Vec<&str> {
    keys.iter().map(|key| key.id.as_str()).collect()
}

fn window() -> TimeDelta {
    TimeDelta::from_std(Window::DEFAULT.duration()).unwrap()
}

#[tokio::test]
async fn each_key_of_a_member_is_in_force_for_each_of_its_users() {
    let fixture = Fixture::create().await;
    let mut keys = fixture.member("m1", 2, "alice").await;
    fixture.account("m1", "alice2").await;
    keys.sort_by_key(|key| key.id.clone());
    assert_eq!(fixture.propagate().await, 4);
    let page = changes(&fixture.feed(), Cursor::START).await;
    let ids = ids(&keys);
    assert_eq!(
        words(&page.changes),
        [
            (Operation::Add, "alice", ids[0]),
            (Operation::Add, "alice", ids[1]),
            (Operation::Add, "alice2", ids[0]),
            (Operation::Add, "alice2", ids[1]),
        ]
    );
    let Change { member: whose, public_key, expires_at, enforce_by, .. } = &page.changes[0];
    assert_eq!((whose, expires_at, enforce_by), (&member("m1"), &None, &None));
    assert_eq!(public_key.as_deref(), Some(keys[0].key.to_string().as_str()));
    // Again there is nothing to do.
    assert_eq!(fixture.propagate().await, 0);
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.pending_member").await, 0);
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.changed_member").await, 0);
}

#[tokio::test]
async fn a_member_without_an_account_and_an_account_without_keys_change_nothing() {
    let fixture = Fixture::create().await;
    fixture.add(&key("m1", 1)).await;
    fixture.account("m2", "bob").await;
    assert_eq!(fixture.propagate().await, 0);
    // What is missing comes later.
    fixture.account("m1", "alice").await;
    assert_eq!(fixture.propagate().await, 1);
    fixture.add(&key("m2", 1)).await;
    assert_eq!(fixture.propagate().await, 1);
}

#[tokio::test]
async fn a_site_hears_of_its_own_accounts_alone() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 1, "alice").await;
    let registry = fixture.registry(1);
    registry.add_account(&site("south"), &member("m1"), &unix_user("al")).await.unwrap();
    registry.add_account(&site("south"), &member("m2"), &unix_user("bob")).await.unwrap();
    // Who propagates for one brings what is new to all.
    assert_eq!(fixture.propagate_at("south").await, 1);
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.changed_member").await, 0);
    assert_eq!(fixture.propagate().await, 1);
    let (set, _) = applied(&fixture.feed()).await;
    assert_eq!(set.iter().map(|(user, ..)| user.as_str()).collect::<Vec<_>>(), ["alice"]);
    let (set, _) = applied(&fixture.feed_of("south", Window::DEFAULT)).await;
    assert_eq!(set.iter().map(|(user, ..)| user.as_str()).collect::<Vec<_>>(), ["al"]);
}

#[tokio::test]
async fn a_removal_has_to_be_in_force_the_window_after_the_key_was_removed() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 1, "alice").await;
    fixture.propagate().await;
    let removed = fixture.remove(&keys[0].id).await;
    fixture.propagate().await;
    let page = changes(&fixture.feed(), Cursor::START).await;
    assert_eq!(
        words(&page.changes),
        [
            (Operation::Add, "alice", keys[0].id.as_str()),
            (Operation::Remove, "alice", keys[0].id.as_str())
        ]
    );
    assert_eq!(page.changes[1].enforce_by, Some(removed.removed_at.unwrap() + window()));
    assert_eq!(page.changes[1].public_key, None);
}

#[tokio::test]
async fn a_removal_has_to_be_in_force_the_window_after_the_account_was_removed() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 2, "alice").await;
    fixture.account("m1", "other").await;
    fixture.propagate().await;
    let registry = fixture.registry(1);
    let gone = registry.remove_account(&here(), &unix_user("alice")).await.unwrap().value;
    // A key that goes afterwards does not make it later.
    let later = fixture.remove(&keys[0].id).await;
    assert!(later.removed_at > gone.removed_at);
    fixture.propagate().await;
    let page = changes(&fixture.feed(), Cursor::START).await;
    let removals: Vec<_> =
        page.changes.iter().filter(|change| change.operation == Operation::Remove).collect();
    assert_eq!(removals.len(), 3);
    for removal in removals {
        let moment = if removal.unix_user == unix_user("alice") {
            gone.removed_at
        } else {
            later.removed_at
        };
        assert_eq!(removal.enforce_by, moment.map(|moment| moment + window()), "{removal:?}");
    }
}

#[tokio::test]
async fn an_account_that_was_given_again_makes_no_later_removal_earlier() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 1, "alice").await;
    fixture.propagate().await;
    fixture.registry(1).remove_account(&here(), &unix_user("alice")).await.unwrap();
    fixture.account("m1", "alice").await;
    assert_eq!(fixture.propagate().await, 0, "as if nothing had been");
    let removed = fixture.remove(&keys[0].id).await;
    fixture.propagate().await;
    let page = changes(&fixture.feed(), Cursor::START).await;
    assert_eq!(page.changes[1].enforce_by, Some(removed.removed_at.unwrap() + window()));
}

#[tokio::test]
async fn a_key_goes_by_itself_when_its_end_has_come() {
    let fixture = Fixture::create().await;
    fixture.account("m1", "alice").await;
    let row = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let now = DateTime::<Utc>::from_timestamp_millis(fixture.count(row).await).unwrap();
    let end = KeyEnd::new(now + TimeDelta::milliseconds(500)).unwrap();
    let expiring = fixture.add(&NewKey { end: Some(end), ..key("m1", 1) }).await;
    let staying = fixture.add(&key_until("m1", 2, "2999-01-01T00:00:00Z")).await;
    assert_eq!(fixture.propagate().await, 2);
    let removed = test_support::eventually(crate::support::LONG, "the end of a key", async || {
        Some(fixture.propagate().await).filter(|written| *written > 0)
    })
    .await;
    assert_eq!(removed, 1);
    let page = changes(&fixture.feed(), Cursor::START).await;
    let last = page.changes.last().unwrap();
    assert_eq!((last.operation, &last.key_id), (Operation::Remove, &expiring.id));
    assert_eq!(last.enforce_by, Some(end.time() + window()));
    let added = page.changes.iter().find(|change| change.key_id == staying.id).unwrap();
    assert_eq!(added.expires_at, staying.expires_at);
    assert_eq!(fixture.propagate().await, 0);
}

#[tokio::test]
async fn a_user_that_moves_to_another_member_has_that_ones_keys() {
    let fixture = Fixture::create().await;
    let old = fixture.member("m1", 1, "shared").await;
    let new = fixture.add(&key("m2", 1)).await;
    fixture.propagate().await;
    fixture.registry(1).remove_account(&here(), &unix_user("shared")).await.unwrap();
    fixture.account("m2", "shared").await;
    assert_eq!(fixture.propagate().await, 2);
    let page = changes(&fixture.feed(), Cursor::START).await;
    assert_eq!(
        words(&page.changes)[1..],
        [
            (Operation::Remove, "shared", old[0].id.as_str()),
            (Operation::Add, "shared", new.id.as_str()),
        ]
    );
}

#[tokio::test]
async fn what_came_and_went_between_two_looks_leaves_no_trace() {
    let fixture = Fixture::create().await;
    let keys = fixture.member("m1", 1, "alice").await;
    fixture.remove(&keys[0].id).await;
    let registry = fixture.registry(1);
    registry.remove_account(&here(), &unix_user("alice")).await.unwrap();
    assert_eq!(fixture.propagate().await, 0);
    // And an account that was away for a moment was never away.
    fixture.member("m2", 1, "bob").await;
    fixture.propagate().await;
    registry.remove_account(&here(), &unix_user("bob")).await.unwrap();
    fixture.account("m2", "bob").await;
    assert_eq!(fixture.propagate().await, 0);
}

/// Whatever happens in whatever order, the feed leads to what is in force, and that is what should be.
#[tokio::test(flavor = "multi_thread")]
async fn after_anything_at_all_the_feed_leads_to_what_should_be_in_force() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(2);
    let mut dice = Random::of_this_test();
    let sites = ["north-1", "south"];
    let users = ["a", "a-b", "ab", "b", "c"];
    let mut ids = Vec::new();
    for _ in 0..300 {
        let whose = format!("m{}", dice.within(0..4));
        let at = site(sites[usize::try_from(dice.within(0..2)).unwrap()]);
        let user = unix_user(users[usize::try_from(dice.within(0..5)).unwrap()]);
        match dice.within(0..10) {
            0..=3 => {
                let number = u32::try_from(dice.within(0..6)).unwrap();
                ids.push(registry.add_key(&key(&whose, number), &random()).await.unwrap().value.id);
            }
            4..=5 => {
                // It may belong to somebody.
                let _ = registry.add_account(&at, &member(&whose), &user).await;
            }
            6 => {
                if let Some(id) = dice.choose(&ids) {
                    registry.remove_key(id, None).await.unwrap();
                }
            }
            7 => {
                let _ = registry.remove_account(&at, &user).await;
            }
            _ => {
                fixture.propagate_at(at.as_str()).await;
            }
        }
    }
    for at in sites {
        fixture.propagate_at(at).await;
        let feed = fixture.feed_of(at, Window::DEFAULT);
        let (by_changes, cursor) = applied(&feed).await;
        let (by_snapshot, head) = snapshot(&feed).await;
        assert_eq!((&by_changes, cursor), (&by_snapshot, head));
        let sql = fixture.sql().await;
        let query = "SELECT a.unix_user, k.key_id, k.public_key
                       FROM ssh_access.site_account a JOIN ssh_access.member_key k USING (member_id)
                      WHERE a.site = $1 AND a.removed_at IS NULL AND k.removed_at IS NULL
                      ORDER BY 1, 2";
        let rows = sql.query(query, &[&at]).await.unwrap();
        let should: Vec<(String, String, String)> =
            rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        assert_eq!(by_changes, should, "{at}");
        assert!(cursor.seq() > 20, "{cursor}");
    }
}
