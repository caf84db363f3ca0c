//! Keys and accounts: what is added, what is there already, what is refused.

use chrono::TimeDelta;
use ssh_access::{
    AccountListing, AddAccountError, AddKeyError, KeyEnd, KeyId, KeyListing, KeyState, NewKey,
    Registry, RemoveAccountError, RemoveKeyError,
};

use crate::support::{Fixture, here, key, key_until, member, now, random, site, unix_user};

const ALL: KeyListing = KeyListing { all: true, after: None, limit: 1000 };

#[tokio::test]
async fn a_key_is_added_once_and_then_known() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let new = key_until("m1", 1, "2999-01-01T00:00:00.123456Z");
    let first = registry.add_key(&new, &random()).await.unwrap();
    assert!(first.new);
    assert_eq!((&first.value.member, &first.value.key), (&new.member, &new.key));
    assert_eq!(first.value.expires_at, new.end.map(KeyEnd::time));
    let again = registry.add_key(&new, &random()).await.unwrap();
    assert!(!again.new);
    assert_eq!(again.value, first.value);
    assert_eq!(registry.key(&first.value.id).await.unwrap(), Some(first.value.clone()));
    assert_eq!(registry.keys(&member("m1"), &ALL).await.unwrap(), [first.value]);
}

#[tokio::test]
async fn the_same_key_with_another_end_is_refused() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let first = fixture.add(&key("m1", 1)).await;
    let other = key_until("m1", 1, "2999-01-01T00:00:00Z");
    let refusal = registry.add_key(&other, &random()).await.unwrap_err();
    let AddKeyError::OtherEnd { id, expires_at: None } = refusal else { panic!("{refusal:?}") };
    assert_eq!(id, first.id);
}

#[tokio::test]
async fn a_key_whose_end_has_passed_is_refused() {
    let fixture = Fixture::create().await;
    let past = key_until("m1", 1, "2000-01-01T00:00:00Z");
    let refusal = fixture.registry(1).add_key(&past, &random()).await.unwrap_err();
    assert!(matches!(refusal, AddKeyError::EndPassed), "{refusal:?}");
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.member_key").await, 0);
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.member").await, 0);
}

#[tokio::test]
async fn two_members_may_have_one_key() {
    let fixture = Fixture::create().await;
    let (one, other) = (fixture.add(&key("m1", 1)).await, fixture.add(&key("m2", 1)).await);
    assert_eq!(one.key, other.key);
    assert_ne!(one.id, other.id);
}

#[tokio::test]
async fn a_member_has_thirty_two_keys_and_not_one_more() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    for number in 0..Registry::MOST_KEYS {
        assert!(registry.add_key(&key("m1", number), &random()).await.unwrap().new);
    }
    let refusal = registry.add_key(&key("m1", 99), &random()).await.unwrap_err();
    assert!(matches!(refusal, AddKeyError::TooMany { limit: 32 }), "{refusal:?}");
    // One that is there is still known, and another member has its own.
    assert!(!registry.add_key(&key("m1", 7), &random()).await.unwrap().new);
    assert!(registry.add_key(&key("m2", 99), &random()).await.unwrap().new);
    let one = registry.keys(&member("m1"), &ALL).await.unwrap().remove(0);
    registry.remove_key(&one.id, None).await.unwrap();
    assert!(registry.add_key(&key("m1", 99), &random()).await.unwrap().new);
}

#[tokio::test]
async fn a_key_is_removed_once_and_for_ever() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let added = fixture.add(&key("m1", 1)).await;
    let removed = registry.remove_key(&added.id, None).await.unwrap();
    assert!(removed.new);
    assert_eq!(removed.value.state, KeyState::Removed);
    let again = registry.remove_key(&added.id, None).await.unwrap();
    assert!(!again.new);
    assert_eq!(again.value, removed.value);
    // The same key may come again, as another.
    let anew = registry.add_key(&key("m1", 1), &random()).await.unwrap();
    assert!(anew.new);
    assert_ne!(anew.value.id, added.id);
}

#[tokio::test]
async fn a_key_of_another_member_looks_like_one_that_does_not_exist() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let added = fixture.add(&key("m1", 1)).await;
    for (id, of) in [(added.id.clone(), Some(member("m2"))), (KeyId::from_bytes([1; 16]), None)] {
        let refusal = registry.remove_key(&id, of.as_ref()).await.unwrap_err();
        assert!(matches!(refusal, RemoveKeyError::UnknownKey), "{refusal:?}");
    }
    assert_eq!(registry.key(&added.id).await.unwrap().unwrap().state, KeyState::Active);
    assert!(registry.remove_key(&added.id, Some(&member("m1"))).await.unwrap().new);
}

#[tokio::test]
async fn a_key_that_has_expired_neither_counts_nor_is_in_the_way() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    for number in 1..Registry::MOST_KEYS {
        fixture.add(&key("m1", number)).await;
    }
    let soon = KeyEnd::new(now(&fixture).await + TimeDelta::milliseconds(300)).unwrap();
    let expiring = fixture.add(&NewKey { end: Some(soon), ..key("m1", 0) }).await;
    assert_eq!(expiring.state, KeyState::Active);
    test_support::eventually(crate::support::LONG, "the key to expire", async || {
        let stored = registry.key(&expiring.id).await.unwrap().unwrap();
        (stored.state == KeyState::Expired).then_some(())
    })
    .await;
    let listing = KeyListing { all: false, after: None, limit: 1000 };
    assert_eq!(registry.keys(&member("m1"), &listing).await.unwrap().len(), 31);
    // Another one, and then the very same again with another end.
    assert!(registry.add_key(&key("m1", 99), &random()).await.unwrap().new);
    assert_eq!(registry.key(&expiring.id).await.unwrap().unwrap().state, KeyState::Expired);
    let refusal = registry.add_key(&key("m1", 0), &random()).await.unwrap_err();
    assert!(matches!(refusal, AddKeyError::TooMany { .. }), "{refusal:?}");
    let keys = "SELECT keys::bigint FROM ssh_access.member";
    assert_eq!(fixture.count(keys).await, 32);
}

#[tokio::test]
async fn an_account_is_added_and_removed_once() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let (m1, alice) = (member("m1"), unix_user("alice"));
    let first = registry.add_account(&here(), &m1, &alice).await.unwrap();
    let again = registry.add_account(&here(), &m1, &alice).await.unwrap();
    assert!(first.new && !again.new);
    assert_eq!(first.value, again.value);
    let refusal = registry.add_account(&here(), &member("m2"), &alice).await.unwrap_err();
    let AddAccountError::Taken { member: taken } = refusal else { panic!("{refusal:?}") };
    assert_eq!(taken, m1);
    // At another Site it is another user.
    assert!(registry.add_account(&site("south"), &member("m2"), &alice).await.unwrap().new);
    let removed = registry.remove_account(&here(), &alice).await.unwrap();
    let again = registry.remove_account(&here(), &alice).await.unwrap();
    assert!(removed.new && !again.new && removed.value.removed_at.is_some());
    assert_eq!(removed.value, again.value);
    let anew = registry.add_account(&here(), &member("m2"), &alice).await.unwrap();
    assert!(anew.new && anew.value.id > first.value.id);
    // From then on the user is known as the new member's, and not as the old one's.
    let again = registry.add_account(&here(), &member("m2"), &alice).await.unwrap();
    assert!(!again.new);
    assert_eq!(again.value, anew.value);
    let refusal = registry.add_account(&here(), &m1, &alice).await.unwrap_err();
    assert!(matches!(refusal, AddAccountError::Taken { .. }), "{refusal:?}");
    let refusal = registry.remove_account(&here(), &unix_user("bob")).await.unwrap_err();
    assert!(matches!(refusal, RemoveAccountError::UnknownAccount), "{refusal:?}");
}

#[tokio::test]
async fn lists_go_on_after_a_place() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(fixture.add(&key("m1", number)).await.id);
    }
    ids.sort();
    registry.remove_key(&ids[1], None).await.unwrap();
    let listing = KeyListing { all: false, after: Some(ids[0].clone()), limit: 2 };
    let listed = registry.keys(&member("m1"), &listing).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|key| key.id).collect();
    assert_eq!(listed, [ids[2].clone(), ids[3].clone()]);

    let mut accounts = Vec::new();
    for (name, user) in [("m1", "a"), ("m2", "b"), ("m1", "c"), ("m1", "d")] {
        accounts.push(fixture.account(name, user).await.id);
    }
    registry.remove_account(&here(), &unix_user("c")).await.unwrap();
    let mut listing = AccountListing { member: None, all: false, after: None, limit: 100 };
    let users = async |listing: &AccountListing| -> Vec<String> {
        let accounts = registry.accounts(&here(), listing).await.unwrap();
        accounts.into_iter().map(|account| account.unix_user.as_str().to_owned()).collect()
    };
    assert_eq!(users(&listing).await, ["a", "b", "d"]);
    listing.all = true;
    assert_eq!(users(&listing).await, ["a", "b", "c", "d"]);
    listing.member = Some(member("m1"));
    listing.after = Some(accounts[0]);
    assert_eq!(users(&listing).await, ["c", "d"]);
    listing.limit = 1;
    assert_eq!(users(&listing).await, ["c"]);
    assert_eq!(registry.accounts(&site("south"), &listing).await.unwrap(), []);
}

#[tokio::test]
async fn every_change_leaves_that_its_member_has_to_be_looked_at_and_nothing_else_does() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let changed = "SELECT count(*) FROM ssh_access.changed_member";
    let added = fixture.add(&key("m1", 1)).await;
    assert_eq!(fixture.count(changed).await, 1);
    fixture.add(&key("m1", 1)).await;
    assert_eq!(fixture.count(changed).await, 1);
    fixture.account("m1", "alice").await;
    fixture.account("m1", "alice").await;
    assert_eq!(fixture.count(changed).await, 2);
    registry.remove_key(&added.id, None).await.unwrap();
    registry.remove_key(&added.id, None).await.unwrap();
    assert_eq!(fixture.count(changed).await, 3);
    registry.remove_account(&here(), &unix_user("alice")).await.unwrap();
    registry.remove_account(&here(), &unix_user("alice")).await.unwrap();
    assert_eq!(fixture.count(changed).await, 4);
}
