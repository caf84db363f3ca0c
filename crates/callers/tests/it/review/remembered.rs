//! For how long a good answer is given out again.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::json;
use tokio::sync::Semaphore;

use super::*;
use crate::support::token_of;

const MOMENT: Duration = Duration::from_millis(200);

/// Whether the token is known without a question now.
async fn is_remembered(world: &World, reviewer: &Reviewer, token: &ServiceAccountToken) -> bool {
    let before = world.asked().len();
    reviewer.review(token).await.unwrap();
    world.asked().len() == before
}

/// That a token is remembered for `time`, give or take a moment.
async fn assert_remembered_for(
    world: &World,
    reviewer: &Reviewer,
    token: &ServiceAccountToken,
    time: Duration,
) {
    assert!(!is_remembered(world, reviewer, token).await);
    assert!(is_remembered(world, reviewer, token).await);
    pass(time - MOMENT * 5).await;
    assert!(is_remembered(world, reviewer, token).await, "{time:?}");
    // Being asked for makes it no younger.
    pass(MOMENT * 5).await;
    assert!(!is_remembered(world, reviewer, token).await, "{time:?}");
}

#[tokio::test]
async fn a_good_answer_is_given_out_again_for_its_time_and_no_longer() {
    let world = World::answering(accepted).await;
    for seconds in [10, 3] {
        let time = Duration::from_secs(seconds);
        let reviewer = world.reviewer_with(|settings| settings.cache_for = time);
        assert_remembered_for(&world, &reviewer, &token("a"), time).await;
    }
}

#[tokio::test]
async fn no_setting_makes_it_longer_than_ten_seconds_and_zero_is_never() {
    let world = World::answering(accepted).await;
    let reviewer = world.reviewer_with(|settings| settings.cache_for = Duration::from_secs(60));
    assert_remembered_for(&world, &reviewer, &token("a"), Duration::from_secs(10)).await;
    let reviewer = world.reviewer_with(|settings| settings.cache_for = Duration::ZERO);
    for _ in 0..2 {
        assert!(!is_remembered(&world, &reviewer, &token("a")).await);
    }
}

#[tokio::test]
async fn no_answer_outlives_its_token() {
    let world = World::answering(accepted).await;
    let expires = token_until("a", now() + TimeDelta::seconds(4));
    assert_remembered_for(&world, &world.reviewer, &expires, Duration::from_secs(4)).await;
    for token in [
        token_until("expired", now()),
        token_until("long-ago", now() - TimeDelta::days(1)),
        token_of("no-expiry", &json!({ "sub": SUBJECT })),
        token_of("no-number", &json!({ "exp": "soon" })),
        ServiceAccountToken::parse("a.b.c").unwrap(),
    ] {
        for _ in 0..2 {
            assert!(!is_remembered(&world, &world.reviewer, &token).await, "{token:?}");
        }
    }
}

#[tokio::test]
async fn the_time_counts_from_before_the_question() {
    let permits = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&permits);
    let world = World::answering(move |request| {
        Reply::Held(Arc::clone(&held), Box::new(accepted(request)))
    })
    .await;
    let a = token("a");
    let reviewing = tokio::spawn({
        let (reviewer, a) = (world.reviewer.clone(), a.clone());
        async move { reviewer.review(&a).await }
    });
    world.until_asked(1).await;
    let asked = tokio::time::Instant::now();
    pass(Duration::from_secs(6)).await;
    permits.add_permits(1);
    let reviewed = reviewing.await.unwrap().unwrap();
    assert!(reviewed.until <= asked + Duration::from_secs(10), "the answer took its time");
    assert!(is_remembered(&world, &world.reviewer, &a).await);
    pass(Duration::from_secs(4)).await;
    permits.add_permits(1);
    assert!(!is_remembered(&world, &world.reviewer, &a).await);
}

#[tokio::test]
async fn trouble_and_refusals_are_asked_about_again() {
    for reply in [Reply::json(503, "{}"), Reply::html(200), Reply::Cut(Vec::new())] {
        let mut replies = vec![reply.clone(), reply];
        let world =
            World::answering(move |request| replies.pop().unwrap_or_else(|| accepted(request)))
                .await;
        for _ in 0..2 {
            let error = world.review(&token("a")).await.unwrap_err();
            assert!(matches!(error, ReviewError::Trouble(_)), "{error:?}");
        }
        world.review(&token("a")).await.unwrap();
        assert_eq!(world.asked().len(), 3);
    }
}

#[tokio::test]
async fn one_token_says_nothing_of_another() {
    let world = World::answering(|request| {
        if is_about(request, "good") { accepted(request) } else { refused(request) }
    })
    .await;
    world.review(&token("good")).await.unwrap();
    for other in ["good2", "goo", "Good"] {
        assert!(world.review(&token(other)).await.is_err(), "{other}");
    }
}

#[tokio::test]
async fn who_is_granted_nothing_is_not_remembered() {
    let world = World::answering(of_a_stranger).await;
    for times in 1..=2 {
        let reviewed = world.review(&strangers_token("a")).await.unwrap();
        assert_eq!(reviewed.account.to_string(), STRANGER);
        assert_eq!(world.asked().len(), times);
    }
}
