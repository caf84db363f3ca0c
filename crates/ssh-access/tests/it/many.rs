//! Many keys by one call: what becomes of each is what becomes of it alone.

use chrono::TimeDelta;
use ssh_access::{AddKeyError, Done, KeyEnd, KeyListing, NewKey, Registry, StoredKey};
use test_support::at_once;

use crate::support::{Fixture, key, key_until, member, now, random};

const ALL: KeyListing = KeyListing { all: true, after: None, limit: 1000 };

/// What became of each, in words.
fn words(outcomes: &[Result<Done<StoredKey>, AddKeyError>]) -> Vec<&'static str> {
    let word = |outcome: &Result<Done<StoredKey>, AddKeyError>| match outcome {
        Ok(done) if done.new => "new",
        Ok(_) => "known",
        Err(AddKeyError::TooMany { .. }) => "too many",
        Err(AddKeyError::OtherEnd { .. }) => "other end",
        Err(AddKeyError::EndPassed) => "end passed",
        Err(error) => panic!("{error:?}"),
    };
    outcomes.iter().map(word).collect()
}

/// Each member's counter is what the member has.
async fn assert_counted(fixture: &Fixture) {
    let wrong = "SELECT count(*) FROM ssh_access.member m
                  WHERE keys <> (SELECT count(*) FROM ssh_access.member_key k
                                  WHERE k.member_id = m.member_id AND k.removed_at IS NULL)";
    assert_eq!(fixture.count(wrong).await, 0);
}

#[tokio::test]
async fn what_becomes_of_each_key_is_told_in_their_order() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let known = fixture.add(&key("m1", 1)).await;
    let gone = fixture.add(&key("m1", 2)).await;
    fixture.remove(&gone.id).await;
    let until = "2999-01-01T00:00:00.000001Z";
    let new = [
        key("m1", 1),
        key("m1", 2),
        key("m2", 1),
        key_until("m1", 3, until),
        key_until("m1", 3, until),
        key("m1", 3),
        key_until("m1", 1, until),
        key_until("m3", 1, "2000-01-01T00:00:00Z"),
        key("m3", 1),
    ];
    let outcomes = registry.add_keys(&new, &random()).await.unwrap();
    assert_eq!(
        words(&outcomes),
        ["known", "new", "new", "new", "known", "other end", "other end", "end passed", "new"]
    );
    for (new, outcome) in new.iter().zip(&outcomes) {
        let Ok(done) = outcome else { continue };
        assert_eq!((&done.value.member, &done.value.key), (&new.member, &new.key));
        assert_eq!(done.value.expires_at, new.end.map(KeyEnd::time));
        assert_eq!(registry.key(&done.value.id).await.unwrap(), Some(done.value.clone()));
    }
    assert_eq!(outcomes[0].as_ref().unwrap().value, known);
    assert_counted(&fixture).await;
    assert!(registry.add_keys(&[], &random()).await.unwrap().is_empty());
}

#[tokio::test]
async fn who_would_have_too_many_gets_as_many_as_are_left_and_nobody_else_notices() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    for number in 0..30 {
        fixture.add(&key("m1", number)).await;
    }
    let mut new: Vec<NewKey> = (28..34).map(|number| key("m1", number)).collect();
    new.extend((0..33).map(|number| key("m2", number)));
    new.push(key("m3", 1));
    let outcomes = registry.add_keys(&new, &random()).await.unwrap();
    let told = words(&outcomes);
    assert_eq!(told[..6], ["known", "known", "new", "new", "too many", "too many"]);
    assert_eq!(told[6..38], ["new"; 32]);
    assert_eq!(told[38..], ["too many", "new"]);
    assert_counted(&fixture).await;
}

#[tokio::test]
async fn a_key_that_has_expired_makes_room_for_the_same_and_for_others() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    for number in 1..Registry::MOST_KEYS {
        fixture.add(&key("m1", number)).await;
    }
    let soon = KeyEnd::new(now(&fixture).await + TimeDelta::milliseconds(300)).unwrap();
    let expiring = fixture.add(&NewKey { end: Some(soon), ..key("m1", 0) }).await;
    test_support::eventually(crate::support::LONG, "the key to expire", async || {
        (now(&fixture).await > soon.time()).then_some(())
    })
    .await;
    let outcomes = registry.add_keys(&[key("m1", 0), key("m1", 99)], &random()).await.unwrap();
    assert_eq!(words(&outcomes), ["new", "too many"]);
    assert_ne!(outcomes[0].as_ref().unwrap().value.id, expiring.id);
    assert_counted(&fixture).await;
}

#[tokio::test]
async fn keys_are_stored_by_few_statements_and_each_member_is_told_of() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let new: Vec<NewKey> =
        (0..1_200).map(|number| key(&format!("m{}", number % 400), number)).collect();
    let outcomes = registry.add_keys(&new, &random()).await.unwrap();
    assert_eq!(words(&outcomes), ["new"; 1_200]);
    let transactions = "SELECT count(DISTINCT xmin::text) FROM ssh_access.member_key";
    assert_eq!(fixture.count(transactions).await, 3);
    let told = "SELECT count(DISTINCT member_id) FROM ssh_access.changed_member";
    assert_eq!(fixture.count(told).await, 400);
    assert_counted(&fixture).await;
    // Once more: nothing is written.
    let changes = "SELECT count(*) FROM ssh_access.changed_member";
    let written = fixture.count(changes).await;
    let again = registry.add_keys(&new, &random()).await.unwrap();
    assert_eq!(words(&again), ["known"; 1_200]);
    let ids = |outcomes: &[Result<Done<StoredKey>, AddKeyError>]| -> Vec<_> {
        outcomes.iter().map(|outcome| outcome.as_ref().unwrap().value.id.clone()).collect()
    };
    assert_eq!(ids(&again), ids(&outcomes));
    assert_eq!(fixture.count(changes).await, written);
    account_and_propagate(&fixture).await;
    assert_eq!(registry.keys(&member("m7"), &ALL).await.unwrap().len(), 3);
}

/// What was added at once reaches the feed as what was added alone does.
async fn account_and_propagate(fixture: &Fixture) {
    fixture.account("m7", "alice").await;
    assert_eq!(fixture.propagate().await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_same_keys_from_everybody_each_is_new_once_and_all_are_counted() {
    const CALLERS: usize = 12;
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..5_u32 {
        let answers = at_once(CALLERS, |caller| {
            let registry = registry.clone();
            async move {
                let mut new: Vec<NewKey> = (0..100)
                    .map(|number| key(&format!("m{}", number % 10), round * 5 + number / 20))
                    .collect();
                // In another order at each.
                new.rotate_left(caller * 8);
                let outcomes = registry.add_keys(&new, &random()).await.unwrap();
                outcomes.into_iter().map(Result::unwrap).collect::<Vec<_>>()
            }
        })
        .await;
        let new = answers.iter().flatten().filter(|done| done.new).count();
        let stored = fixture.count("SELECT count(*) FROM ssh_access.member_key").await;
        assert_eq!(stored, i64::from(round + 1) * 50);
        assert_eq!(new, 50, "each is told as new by one of them");
        assert_counted(&fixture).await;
    }
}
