//! A bound on reviews under way, and who waits for it.

use std::sync::Arc;

use test_support::Received;
use tokio::{sync::Semaphore, task::JoinHandle};

use super::*;

/// A world in which questions about what nobody knows are held, and in which one is about "known".
async fn flooded() -> (World, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&permits);
    let world = World::answering(move |request: &Received| {
        if is_about(request, "known") {
            return accepted(request);
        }
        Reply::Held(Arc::clone(&held), Box::new(refused(request)))
    })
    .await;
    (world.forgetting_after(Duration::from_secs(1)), permits)
}

/// Places that are for everybody, of four: one is for who is known, one for who claims to be granted
/// something.
const EVERYBODY: usize = 2;

type Caller = JoinHandle<Result<Reviewed, ReviewError>>;

fn caller(world: &World, token: ServiceAccountToken) -> Caller {
    let reviewer = world.reviewer.clone();
    tokio::spawn(async move { reviewer.review(&token).await })
}

fn garbage(world: &World, count: usize) -> Vec<Caller> {
    (0..count).map(|number| caller(world, strangers_token(&format!("garbage-{number}")))).collect()
}

/// The names that were asked about so far.
fn names(world: &World) -> Vec<String> {
    let name = |token: String| token.rsplit('.').next().unwrap().to_owned();
    world.asked().into_iter().map(name).collect()
}

#[tokio::test]
async fn a_flood_stays_within_its_places_and_keeps_no_known_caller_out() {
    let (world, permits) = flooded().await;
    world.review(&token("known")).await.unwrap();
    let flood = garbage(&world, 40);
    world.until_asked(1 + EVERYBODY).await;
    // Remembered: without a question, so without a place.
    world.review(&token("known")).await.unwrap();
    assert_eq!(world.asked().len(), 1 + EVERYBODY);
    // Not remembered any more: at once all the same, once and again.
    for round in 0..3 {
        world.reviewer_forgets().await;
        world.review(&token("known")).await.unwrap();
        assert_eq!(world.asked().len(), 2 + EVERYBODY + round);
    }
    assert_eq!(names(&world).iter().filter(|name| name.starts_with("garbage")).count(), EVERYBODY);
    permits.add_permits(flood.len());
    for caller in flood {
        let outcome = caller.await.unwrap();
        assert!(matches!(outcome, Err(ReviewError::Refused(_) | ReviewError::Busy)), "{outcome:?}");
    }
}

#[tokio::test]
async fn who_waited_first_is_next() {
    let (world, permits) = flooded().await;
    let flood = garbage(&world, 8);
    for asked in EVERYBODY + 1..=8 {
        world.until_asked(asked - 1).await;
        permits.add_permits(1);
        world.until_asked(asked).await;
    }
    permits.add_permits(flood.len());
    for caller in flood {
        assert!(matches!(caller.await.unwrap(), Err(ReviewError::Refused(_))));
    }
    let mut asked = names(&world);
    // The first ones were under way at once.
    asked[..EVERYBODY].sort();
    let expected: Vec<_> = (0..8).map(|number| format!("garbage-{number}")).collect();
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn who_has_no_place_in_time_is_told_so_and_no_trouble() {
    let (world, permits) = flooded().await;
    let mut flood = garbage(&world, 8);
    world.until_asked(EVERYBODY).await;
    // Half of the budget; the other half is for the question.
    pass(Duration::from_secs(10)).await;
    for caller in flood.split_off(EVERYBODY) {
        assert!(matches!(caller.await.unwrap(), Err(ReviewError::Busy)));
    }
    assert_eq!(world.asked().len(), EVERYBODY);
    permits.add_permits(EVERYBODY);
    for caller in flood {
        assert!(matches!(caller.await.unwrap(), Err(ReviewError::Refused(_))));
    }
}

#[tokio::test]
async fn who_hangs_up_while_waiting_is_not_asked_about() {
    let (world, permits) = flooded().await;
    let mut flood = garbage(&world, 8);
    world.until_asked(EVERYBODY).await;
    for caller in flood.split_off(EVERYBODY) {
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
    }
    let last = caller(&world, strangers_token("last"));
    permits.add_permits(EVERYBODY + 1);
    assert!(matches!(last.await.unwrap(), Err(ReviewError::Refused(_))));
    for caller in flood {
        assert!(matches!(caller.await.unwrap(), Err(ReviewError::Refused(_))));
    }
    assert_eq!(world.asked().len(), EVERYBODY + 1);
    assert_eq!(names(&world).pop().as_deref(), Some("last"));
}

/// As [`flooded`], where "once" is accepted once and then refused, and "vouched" is the token of an
/// account that is granted nothing.
async fn flooded_but_for_two() -> (World, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&permits);
    let mut accept = true;
    let world = World::answering(move |request: &Received| {
        if is_about(request, "vouched") {
            return of_a_stranger(request);
        }
        if is_about(request, "once") {
            return if std::mem::take(&mut accept) { accepted(request) } else { refused(request) };
        }
        Reply::Held(Arc::clone(&held), Box::new(refused(request)))
    })
    .await;
    (world.forgetting_after(Duration::from_secs(1)), permits)
}

/// That a token has no place while there is a flood.
async fn assert_is_a_stranger(world: &World, token: ServiceAccountToken) {
    let before = world.asked().len();
    let caller = caller(world, token);
    // It has begun when this thread comes back to us.
    tokio::task::yield_now().await;
    pass(Duration::from_millis(9_900)).await;
    assert!(matches!(caller.await.unwrap(), Err(ReviewError::Busy)));
    assert_eq!(world.asked().len(), before);
}

#[tokio::test]
async fn who_was_refused_is_a_stranger_again() {
    let (world, permits) = flooded_but_for_two().await;
    // It claims nothing.
    let once = strangers_token("once");
    world.review(&once).await.unwrap();
    let flood = garbage(&world, EVERYBODY);
    world.until_asked(1 + EVERYBODY).await;
    world.reviewer_forgets().await;
    let outcome = world.review(&once).await;
    assert!(matches!(outcome, Err(ReviewError::Refused(_))), "{outcome:?}");
    assert_is_a_stranger(&world, once).await;
    permits.add_permits(flood.len());
}

#[tokio::test]
async fn who_is_granted_nothing_stays_a_stranger() {
    let (world, permits) = flooded_but_for_two().await;
    let vouched = strangers_token("vouched");
    for _ in 0..2 {
        world.review(&vouched).await.unwrap();
    }
    let flood = garbage(&world, EVERYBODY);
    world.until_asked(2 + EVERYBODY).await;
    assert_is_a_stranger(&world, vouched).await;
    permits.add_permits(flood.len());
}

/// As a Runtime is with its next token, or after a restart of ours.
#[tokio::test]
async fn who_claims_to_be_granted_something_has_a_place_beside_a_flood() {
    let (world, permits) = flooded().await;
    let mut flood = garbage(&world, 40);
    world.until_asked(EVERYBODY).await;
    world.review(&token("known")).await.unwrap();
    assert_eq!(world.asked().len(), EVERYBODY + 1);
    // Anybody can claim it: then that place is taken as well, and who is known has another.
    flood.extend((0..4).map(|number| caller(&world, token(&format!("liar-{number}")))));
    world.until_asked(EVERYBODY + 2).await;
    world.reviewer_forgets().await;
    world.review(&token("known")).await.unwrap();
    assert_eq!(world.asked().len(), EVERYBODY + 3);
    permits.add_permits(flood.len());
}

#[tokio::test]
async fn a_probe_waits_for_its_place_and_says_nothing_without_one() {
    let (world, permits) = flooded().await;
    let known = token("known");
    world.review(&known).await.unwrap();
    // It is about our own token, which the peer holds as any other.
    let probing = || {
        let reviewer = world.reviewer.clone();
        tokio::spawn(async move { reviewer.probe().await })
    };
    let flood = garbage(&world, EVERYBODY);
    world.until_asked(1 + EVERYBODY).await;
    let first = probing();
    world.until_asked(2 + EVERYBODY).await;
    let second = probing();
    tokio::task::yield_now().await;
    pass(Duration::from_millis(9_900)).await;
    assert!(matches!(second.await.unwrap(), Err(ReviewError::Busy)));
    assert_eq!(world.asked().len(), 2 + EVERYBODY);
    permits.add_permits(flood.len() + 1);
    first.await.unwrap().unwrap();
}
