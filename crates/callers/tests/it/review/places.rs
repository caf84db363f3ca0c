//! A bound on reviews under way, and who waits for it.

use std::sync::Arc;

use test_support::{Received, eventually};
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

type Caller = JoinHandle<Result<Reviewed, ReviewError>>;

fn caller(world: &World, name: &str) -> Caller {
    let (reviewer, token) = (world.reviewer.clone(), token(name));
    tokio::spawn(async move { reviewer.review(&token).await })
}

fn garbage(world: &World, count: usize) -> Vec<Caller> {
    (0..count).map(|number| caller(world, &format!("garbage-{number}"))).collect()
}

async fn until_asked(world: &World, times: usize) {
    eventually(Duration::from_secs(20), "the questions", async || {
        (world.asked().len() >= times).then_some(())
    })
    .await;
}

/// The names that were asked about so far.
fn names(world: &World) -> Vec<String> {
    let name = |token: String| token.rsplit('.').next().unwrap().to_owned();
    world.asked().into_iter().map(name).collect()
}

/// Lets time pass, for the timers of this test.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_flood_stays_within_its_places_and_keeps_no_known_caller_out() {
    let (world, permits) = flooded().await;
    world.review(&token("known")).await.unwrap();
    let flood = garbage(&world, 40);
    // Three of the four places are for everybody.
    until_asked(&world, 4).await;
    // Remembered: without a question, so without a place.
    world.review(&token("known")).await.unwrap();
    assert_eq!(world.asked().len(), 4);
    // Not remembered any more: at once all the same, once and again.
    for round in 0..3 {
        world.reviewer_forgets().await;
        world.review(&token("known")).await.unwrap();
        assert_eq!(world.asked().len(), 5 + round);
    }
    assert_eq!(names(&world).iter().filter(|name| name.starts_with("garbage")).count(), 3);
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
    for asked in 4..=8 {
        until_asked(&world, asked - 1).await;
        permits.add_permits(1);
        until_asked(&world, asked).await;
    }
    permits.add_permits(flood.len());
    for caller in flood {
        assert!(matches!(caller.await.unwrap(), Err(ReviewError::Refused(_))));
    }
    let mut asked = names(&world);
    // The first three were under way at once.
    asked[..3].sort();
    let expected: Vec<_> = (0..8).map(|number| format!("garbage-{number}")).collect();
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn who_has_no_place_in_time_is_told_so_and_no_trouble() {
    let (world, permits) = flooded().await;
    let mut flood = garbage(&world, 8);
    until_asked(&world, 3).await;
    // Half of the budget; the other half is for the question.
    pass(Duration::from_secs(10)).await;
    for caller in flood.split_off(3) {
        assert!(matches!(caller.await.unwrap(), Err(ReviewError::Busy)));
    }
    assert_eq!(world.asked().len(), 3);
    permits.add_permits(3);
    for caller in flood {
        assert!(matches!(caller.await.unwrap(), Err(ReviewError::Refused(_))));
    }
}

#[tokio::test]
async fn who_hangs_up_while_waiting_is_not_asked_about() {
    let (world, permits) = flooded().await;
    let mut flood = garbage(&world, 8);
    until_asked(&world, 3).await;
    for caller in flood.split_off(3) {
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
    }
    let last = caller(&world, "last");
    permits.add_permits(4);
    assert!(matches!(last.await.unwrap(), Err(ReviewError::Refused(_))));
    for caller in flood {
        assert!(matches!(caller.await.unwrap(), Err(ReviewError::Refused(_))));
    }
    assert_eq!(world.asked().len(), 4);
    assert_eq!(names(&world).pop().as_deref(), Some("last"));
}

#[tokio::test]
async fn who_was_refused_is_a_stranger_again() {
    let permits = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&permits);
    let mut known = 0;
    let world = World::answering(move |request: &Received| {
        if is_about(request, "known") {
            known += 1;
            return if known == 1 { accepted(request) } else { refused(request) };
        }
        Reply::Held(Arc::clone(&held), Box::new(refused(request)))
    })
    .await
    .forgetting_after(Duration::from_secs(1));
    world.review(&token("known")).await.unwrap();
    let flood = garbage(&world, 3);
    until_asked(&world, 4).await;
    world.reviewer_forgets().await;
    let outcome = world.review(&token("known")).await;
    assert!(matches!(outcome, Err(ReviewError::Refused(_))), "{outcome:?}");
    let last = caller(&world, "known");
    // It has begun when this thread comes back to us.
    tokio::task::yield_now().await;
    pass(Duration::from_millis(9_900)).await;
    assert!(matches!(last.await.unwrap(), Err(ReviewError::Busy)));
    permits.add_permits(flood.len());
}
