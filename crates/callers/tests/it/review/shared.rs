//! Callers with one token at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use test_support::Received;
use tokio::{sync::Semaphore, task::JoinHandle, time::timeout};

use super::*;

type Answer = fn(&Received) -> Reply;

/// A world whose every answer waits for a permit.
async fn held(answer: Answer) -> (World, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&permits);
    let answer =
        move |request: &Received| Reply::Held(Arc::clone(&held), Box::new(answer(request)));
    (World::answering(answer).await, permits)
}

fn caller(world: &World) -> JoinHandle<Result<Reviewed, ReviewError>> {
    let reviewer = world.reviewer.clone();
    tokio::spawn(async move { reviewer.review(&token("a")).await })
}

#[tokio::test]
async fn thirty_two_first_requests_cause_one_review() {
    for answer in [accepted as Answer, refused, |_| Reply::json(503, "{}")] {
        let (world, permits) = held(answer).await;
        // They have all begun before the first question is out, as they were first in this thread.
        let callers: Vec<_> = (0..32).map(|_| caller(&world)).collect();
        world.until_asked(1).await;
        permits.add_permits(64);
        let outcomes: Vec<_> = join_all(callers)
            .await
            .into_iter()
            .map(|outcome| format!("{:?}", outcome.unwrap()))
            .collect();
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{outcomes:?}");
        assert_eq!(world.asked().len(), 1, "{}", outcomes[0]);
    }
}

#[tokio::test]
async fn a_failure_is_shared_by_those_who_waited_and_nobody_after() {
    let (world, permits) = held(refused).await;
    let callers = [caller(&world), caller(&world)];
    world.until_asked(1).await;
    permits.add_permits(1);
    for outcome in join_all(callers).await {
        assert!(outcome.unwrap().is_err());
    }
    let later = caller(&world);
    world.until_asked(2).await;
    permits.add_permits(1);
    assert!(later.await.unwrap().is_err());
    assert_eq!(world.asked().len(), 2);
}

#[tokio::test]
async fn who_hangs_up_does_not_end_it_for_the_others() {
    let (world, permits) = held(accepted).await;
    let (first, second) = (caller(&world), caller(&world));
    world.until_asked(1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    permits.add_permits(1);
    second.await.unwrap().unwrap();
    assert_eq!(world.asked().len(), 1);
}

#[tokio::test]
async fn a_question_that_is_out_is_good_for_whoever_comes_next() {
    let (world, permits) = held(accepted).await;
    let first = caller(&world);
    world.until_asked(1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let second = caller(&world);
    // It has begun when this thread comes back to us.
    tokio::task::yield_now().await;
    permits.add_permits(1);
    second.await.unwrap().unwrap();
    assert_eq!(world.asked().len(), 1);
}

/// Nothing is remembered in these two, so each answer's time is over when it comes.
#[tokio::test]
async fn who_is_there_before_the_question_gets_its_answer_though_its_time_is_over() {
    let (world, permits) = held(accepted).await;
    let world = world.forgetting_after(Duration::ZERO);
    let callers: Vec<_> = (0..8).map(|_| caller(&world)).collect();
    world.until_asked(1).await;
    permits.add_permits(8);
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
    assert_eq!(world.asked().len(), 1);
}

#[tokio::test]
async fn who_comes_after_the_question_shares_the_next_one_where_its_time_is_over() {
    let (world, permits) = held(accepted).await;
    let world = world.forgetting_after(Duration::ZERO);
    let first = caller(&world);
    world.until_asked(1).await;
    let late = [caller(&world), caller(&world)];
    // They have joined when this thread comes back to us.
    tokio::task::yield_now().await;
    permits.add_permits(1);
    first.await.unwrap().unwrap();
    world.until_asked(2).await;
    assert!(late.iter().all(|late| !late.is_finished()));
    permits.add_permits(1);
    for late in late {
        late.await.unwrap().unwrap();
    }
    assert_eq!(world.asked().len(), 2);
}

#[tokio::test]
async fn one_token_has_no_more_than_thirty_two_requests_wait() {
    for is_known in [false, true] {
        let (world, permits) = held(accepted).await;
        let world = world.forgetting_after(Duration::from_secs(1));
        if is_known {
            permits.add_permits(1);
            world.review(&token("a")).await.unwrap();
            world.reviewer_forgets().await;
        }
        let callers: Vec<_> = (0..32).map(|_| caller(&world)).collect();
        world.until_asked(1 + usize::from(is_known)).await;
        for _ in 0..3 {
            let more = timeout(Duration::from_secs(5), world.review(&token("a"))).await;
            assert!(matches!(more, Ok(Err(ReviewError::Busy))), "{is_known}: {more:?}");
        }
        permits.add_permits(1);
        for caller in callers {
            caller.await.unwrap().unwrap();
        }
        assert_eq!(world.asked().len(), 1 + usize::from(is_known));
        world.review(&token("a")).await.unwrap();
    }
}

#[tokio::test]
async fn who_joins_the_reviews_of_known_tokens_has_a_part_of_the_requests() {
    let (world, permits) = held(accepted).await;
    let mut world = world.forgetting_after(Duration::from_secs(1));
    // Two of them.
    world.settings.requests = 8;
    world.reviewer = world.reviewer_with(|_| ());
    let tokens = [token("a"), token("b")];
    permits.add_permits(2);
    for token in &tokens {
        world.review(token).await.unwrap();
    }
    world.reviewer_forgets().await;
    let calling = |token: &ServiceAccountToken| {
        let (reviewer, token) = (world.reviewer.clone(), token.clone());
        tokio::spawn(async move { reviewer.review(&token).await })
    };
    let mut callers = vec![calling(&tokens[0]), calling(&tokens[0]), calling(&tokens[0])];
    world.until_asked(3).await;
    // Who begins one is not held up by those who join.
    callers.push(calling(&tokens[1]));
    world.until_asked(4).await;
    let more = timeout(Duration::from_secs(5), world.review(&tokens[1])).await;
    assert!(matches!(more, Ok(Err(ReviewError::Busy))), "{more:?}");
    permits.add_permits(2);
    for caller in callers {
        caller.await.unwrap().unwrap();
    }
}

/// Whether the clock of the next test is broken.
static BROKEN: AtomicBool = AtomicBool::new(true);

fn clock() -> DateTime<Utc> {
    assert!(!BROKEN.load(Ordering::Relaxed), "the clock of this test is broken");
    now()
}

#[tokio::test]
async fn a_review_that_panics_tells_those_who_wait_and_leaves_nothing_behind() {
    let world = World::answering(accepted).await;
    let reviewer = Reviewer::open(world.settings.clone(), &random(), clock).unwrap();
    let a = token("a");
    let two = async || {
        let two = join_all([reviewer.review(&a), reviewer.review(&a)]);
        timeout(Duration::from_secs(10), two).await.unwrap()
    };
    // More often than there are places.
    for _ in 0..5 {
        for outcome in two().await {
            let ended = matches!(outcome, Err(ReviewError::Trouble(ReviewTrouble::Ended)));
            assert!(ended, "{outcome:?}");
        }
    }
    assert!(world.asked().is_empty());
    BROKEN.store(false, Ordering::Relaxed);
    for outcome in two().await {
        outcome.unwrap();
    }
    assert_eq!(world.asked().len(), 1);
}
