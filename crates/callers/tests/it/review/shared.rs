//! Callers with one token at once.

use std::sync::Arc;

use futures_util::future::join_all;
use test_support::{Received, eventually};
use tokio::{sync::Semaphore, task::JoinHandle};

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

async fn until_asked(world: &World, times: usize) {
    eventually(Duration::from_secs(20), "a question", async || {
        (world.asked().len() >= times).then_some(())
    })
    .await;
}

#[tokio::test]
async fn thirty_two_first_requests_cause_one_review() {
    for answer in [accepted as Answer, refused, |_| Reply::json(503, "{}")] {
        let (world, permits) = held(answer).await;
        // They have all begun before the first question is out, as they were first in this thread.
        let callers: Vec<_> = (0..32).map(|_| caller(&world)).collect();
        until_asked(&world, 1).await;
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
    until_asked(&world, 1).await;
    permits.add_permits(1);
    for outcome in join_all(callers).await {
        assert!(outcome.unwrap().is_err());
    }
    let later = caller(&world);
    until_asked(&world, 2).await;
    permits.add_permits(1);
    assert!(later.await.unwrap().is_err());
    assert_eq!(world.asked().len(), 2);
}

#[tokio::test]
async fn who_hangs_up_does_not_end_it_for_the_others() {
    let (world, permits) = held(accepted).await;
    let (first, second) = (caller(&world), caller(&world));
    until_asked(&world, 1).await;
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
    until_asked(&world, 1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let second = caller(&world);
    // It has begun when this thread comes back to us.
    tokio::task::yield_now().await;
    permits.add_permits(1);
    second.await.unwrap().unwrap();
    assert_eq!(world.asked().len(), 1);
}
