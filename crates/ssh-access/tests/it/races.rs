//! Many callers at the same moment: one does it, all get the true answer.

use std::sync::Arc;

use ssh_access::{AddAccountError, AddKeyError, PropagateError, PropagatorLimits, Registry};
use test_support::at_once;

use crate::support::{Fixture, applied, here, key, member, random, snapshot, unix_user};

const CALLERS: usize = 32;
const ROUNDS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn of_the_same_key_from_everybody_one_is_new_and_all_are_the_same() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..ROUNDS {
        let number = u32::try_from(round).unwrap();
        let answers = at_once(CALLERS, |_| {
            let registry = registry.clone();
            async move { registry.add_key(&key("m1", number), &random()).await.unwrap() }
        })
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.new).count(), 1);
        assert!(answers.iter().all(|answer| answer.value == answers[0].value), "{answers:?}");
    }
    assert_eq!(fixture.count("SELECT keys::bigint FROM ssh_access.member").await, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_too_many_keys_from_everybody_thirty_two_get_through() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..3_u32 {
        let name = format!("m{round}");
        let answers = at_once(CALLERS, |caller| {
            let (registry, name) = (registry.clone(), name.clone());
            async move {
                let first = u32::try_from(caller * 2).unwrap();
                let mut answers = Vec::new();
                for number in [first, first + 1] {
                    answers.push(registry.add_key(&key(&name, number), &random()).await);
                }
                answers
            }
        })
        .await;
        let (added, refused): (Vec<_>, Vec<_>) =
            answers.into_iter().flatten().partition(Result::is_ok);
        assert_eq!((added.len(), refused.len()), (32, 32));
        for refusal in refused {
            assert!(matches!(refusal, Err(AddKeyError::TooMany { .. })), "{refusal:?}");
        }
    }
    let active = "SELECT count(*) FROM ssh_access.member_key WHERE removed_at IS NULL";
    assert_eq!(fixture.count(active).await, 96);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_come_and_go_at_once_are_counted_as_they_are() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    at_once(CALLERS, |caller| {
        let registry = registry.clone();
        async move {
            for round in 0..ROUNDS {
                let number = u32::try_from((caller + round) % 8).unwrap();
                let added = registry.add_key(&key("m1", number), &random()).await.unwrap();
                if caller % 2 == 0 {
                    registry.remove_key(&added.value.id, None).await.unwrap();
                }
            }
        }
    })
    .await;
    let counted = fixture.count("SELECT keys::bigint FROM ssh_access.member").await;
    let active = "SELECT count(*) FROM ssh_access.member_key WHERE removed_at IS NULL";
    assert_eq!(fixture.count(active).await, counted);
    assert!(counted <= i64::from(Registry::MOST_KEYS));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_removals_one_is_new() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..ROUNDS {
        let added = fixture.add(&key("m1", u32::try_from(round).unwrap())).await;
        let answers = at_once(CALLERS, |_| {
            let (registry, id) = (registry.clone(), added.id.clone());
            async move { registry.remove_key(&id, None).await.unwrap() }
        })
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.new).count(), 1);
        assert!(answers.iter().all(|answer| answer.value == answers[0].value), "{answers:?}");
    }
    assert_eq!(fixture.count("SELECT keys::bigint FROM ssh_access.member").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_everybody_wants_has_one_member() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..ROUNDS {
        let user = unix_user(&format!("u{round}"));
        let answers = at_once(CALLERS, |caller| {
            let (registry, user) = (registry.clone(), user.clone());
            let whose = member(&format!("m{}", caller % 4));
            async move { (whose.clone(), registry.add_account(&here(), &whose, &user).await) }
        })
        .await;
        let mut winner = None;
        let mut new = 0;
        for (whose, answer) in answers {
            let owner = match answer {
                Ok(done) => {
                    new += usize::from(done.new);
                    assert_eq!(done.value.member, whose);
                    whose
                }
                Err(AddAccountError::Taken { member }) => member,
                Err(error) => panic!("{error:?}"),
            };
            assert_eq!(winner.get_or_insert(owner.clone()), &owner);
        }
        assert_eq!(new, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_want_the_lease_one_has_it_and_each_next_one_a_higher_fence() {
    let fixture = Fixture::create().await;
    let all: Vec<_> = (0..CALLERS).map(|_| Arc::new(fixture.propagator())).collect();
    let mut last = 0;
    for _ in 0..ROUNDS {
        let answers = at_once(CALLERS, |caller| {
            let propagator = Arc::clone(&all[caller]);
            async move { (caller, propagator.acquire().await.unwrap()) }
        })
        .await;
        let won: Vec<_> =
            answers.into_iter().filter_map(|(caller, lease)| Some((caller, lease?))).collect();
        let [(winner, lease)] = won[..] else { panic!("{won:?}") };
        assert!(lease.fence() > last);
        last = lease.fence();
        all[winner].release(lease).await.unwrap();
    }
}

/// Members change, and more than one wants to propagate, each with a lease that ends at once and is
/// taken by the next: the feed stays without a gap, each change follows from the one before it, and in
/// the end it leads to what should be in force.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_many_write_has_no_gap_and_nothing_twice() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(8);
    let limits = PropagatorLimits {
        lease: std::time::Duration::from_millis(5),
        ..PropagatorLimits::default()
    };
    let all: Vec<_> = (0..8).map(|_| Arc::new(fixture.propagator_of("north-1", limits))).collect();
    let lost = at_once(16, |caller| {
        let (registry, propagator) = (registry.clone(), Arc::clone(&all[caller % 8]));
        async move {
            let mut lost = 0;
            for round in 0..20_u32 {
                if caller < 8 {
                    let whose = format!("m{}", caller % 4);
                    let added = registry.add_key(&key(&whose, round % 5), &random()).await.unwrap();
                    let user = unix_user(&format!("u{caller}"));
                    registry.add_account(&here(), &member(&whose), &user).await.unwrap();
                    if round % 3 == 0 {
                        registry.remove_key(&added.value.id, None).await.unwrap();
                    }
                } else if let Some(lease) = propagator.acquire().await.unwrap() {
                    match propagator.propagate(lease).await {
                        Ok(_) => {}
                        Err(PropagateError::LeaseLost) => lost += 1,
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
            lost
        }
    })
    .await;
    let sql = fixture.sql().await;
    sql.batch_execute("UPDATE ssh_access.propagator_lease SET expires_at = clock_timestamp()")
        .await
        .unwrap();
    fixture.propagate().await;
    let feed = fixture.feed();
    let (by_changes, cursor) = applied(&feed).await;
    assert_eq!((by_changes.clone(), cursor), snapshot(&feed).await);
    let should = "SELECT count(*) FROM ssh_access.site_account a
                    JOIN ssh_access.member_key k USING (member_id) WHERE k.removed_at IS NULL";
    assert_eq!(i64::try_from(by_changes.len()).unwrap(), fixture.count(should).await);
    assert!(cursor.seq() > 10, "{cursor}, {lost:?}");
}

/// The two changes that make a key be in force are committed in either order, at the same moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_and_an_account_that_come_at_once_meet() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let propagator = fixture.propagator();
    let propagating = tokio::spawn({
        let stop = Arc::clone(&stop);
        async move {
            let lease = propagator.acquire().await.unwrap().unwrap();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                propagator.renew(lease).await.unwrap();
                propagator.propagate(lease).await.unwrap();
            }
            propagator.propagate(lease).await.unwrap();
            propagator.release(lease).await.unwrap();
        }
    });
    for round in 0..ROUNDS {
        at_once(CALLERS, |caller| {
            let registry = registry.clone();
            let whose = format!("m{round}-{}", caller / 2);
            async move {
                if caller % 2 == 0 {
                    registry.add_key(&key(&whose, 1), &random()).await.unwrap();
                } else {
                    let user = unix_user(&format!("u{round}-{}", caller / 2));
                    registry.add_account(&here(), &member(&whose), &user).await.unwrap();
                }
            }
        })
        .await;
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    propagating.await.unwrap();
    assert_eq!(applied(&fixture.feed()).await.0.len(), ROUNDS * CALLERS / 2);
}
