//! Many callers at the same moment: one binding, and the true answer to all.

use resource_provisioning::{Listing, RetainError};
use test_support::at_once;

use crate::support::{Fixture, binding, member, other_bindings, site};

const CALLERS: usize = 32;
const ROUNDS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn of_the_same_binding_from_everybody_one_is_new() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for round in 0..ROUNDS {
        let name = format!("m{round}");
        let answers = at_once(CALLERS, |_| {
            let (registry, wanted) = (registry.clone(), binding(&name));
            async move { registry.retain(wanted).await.unwrap() }
        })
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.new).count(), 1);
        assert!(answers.iter().all(|answer| answer.binding == answers[0].binding), "{answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_different_bindings_one_wins_and_the_others_are_told_which() {
    let fixture = Fixture::create().await;
    let (registry, bindings) = (fixture.registry(CALLERS), fixture.bindings());
    for round in 0..ROUNDS {
        let name = format!("m{round}");
        let others = other_bindings(&name);
        let answers = at_once(CALLERS, |caller| {
            let (registry, wanted) = (registry.clone(), others[caller % others.len()].clone());
            async move { registry.retain(wanted).await }
        })
        .await;
        let won = bindings.retained(&site("north-1"), &member(&name)).await.unwrap().unwrap();
        for (caller, answer) in answers.iter().enumerate() {
            match answer {
                Ok(done) => assert_eq!(done.binding, won),
                Err(RetainError::Conflict { retained }) => {
                    assert_eq!(*retained, won.id);
                    assert_ne!(others[caller % others.len()], won.retained, "a false conflict");
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(answers.iter().flatten().filter(|done| done.new).count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_releases_one_is_new() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    for _ in 0..ROUNDS {
        let id = registry.retain(binding("m1")).await.unwrap().binding.id;
        let answers = at_once(CALLERS, |_| {
            let registry = registry.clone();
            async move { registry.release(id).await.unwrap() }
        })
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.new).count(), 1);
        assert!(answers.iter().all(|answer| answer.binding == answers[0].binding), "{answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retaining_and_releasing_at_once_never_leaves_two_retained() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(CALLERS);
    let counts = at_once(CALLERS, |caller| {
        let registry = registry.clone();
        async move {
            let (mut retained, mut released) = (0, 0);
            for round in 0..ROUNDS {
                let wanted = other_bindings("m1").swap_remove((caller + round) % 4);
                let id = match registry.retain(wanted).await {
                    Ok(done) => {
                        retained += usize::from(done.new);
                        done.binding.id
                    }
                    Err(RetainError::Conflict { retained }) => retained,
                    // So many at once may be too much for the tries that there are.
                    Err(RetainError::Contended) => continue,
                    Err(error) => panic!("{error:?}"),
                };
                released += usize::from(registry.release(id).await.unwrap().new);
            }
            (retained, released)
        }
    })
    .await;
    let listing = Listing { member: None, released: true, after: None, limit: 1000 };
    let all = registry.list(&site("north-1"), &listing).await.unwrap();
    assert!(all.len() > ROUNDS, "{}", all.len());
    assert_eq!(counts.iter().map(|(retained, _)| retained).sum::<usize>(), all.len());
    let released = all.iter().filter(|one| one.released_at.is_some()).count();
    assert_eq!(counts.iter().map(|(_, released)| released).sum::<usize>(), released);
    // No two were retained at the same time.
    let mut times: Vec<_> = all.iter().map(|one| (one.retained_at, one.released_at)).collect();
    times.sort();
    for pair in times.windows(2) {
        assert!(pair[0].1.unwrap() <= pair[1].0, "{pair:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_that_waited_for_the_end_of_another_begins_after_it() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(2);
    let first = registry.retain(binding("m1")).await.unwrap().binding;
    let mut slow = fixture.sql().await;
    let release = slow.transaction().await.unwrap();
    let alone = "SELECT FROM (SELECT pg_advisory_xact_lock(hashtextextended('north-1 m1', 0))) x";
    release.batch_execute(alone).await.unwrap();
    let waiting = tokio::spawn({
        let registry = registry.clone();
        async move { registry.retain(other_bindings("m1").remove(0)).await.unwrap() }
    });
    let sql = fixture.sql().await;
    let waits = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let long = std::time::Duration::from_secs(20);
    test_support::eventually(long, "the binding to wait for its turn", async || {
        (sql.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 1).then_some(())
    })
    .await;
    // The end comes after the other one wanted to begin.
    let end = "UPDATE resource_provisioning.native_binding SET released_at = clock_timestamp()";
    release.batch_execute(end).await.unwrap();
    release.commit().await.unwrap();
    let second = waiting.await.unwrap();
    assert!(second.new);
    let first = registry.release(first.id).await.unwrap().binding;
    assert!(first.released_at.unwrap() <= second.binding.retained_at, "{first:?} {second:?}");
}
