//! Reviews against a peer that answers as a real kube-apiserver 1.36 was seen to answer, or badly.

mod answers;
mod files;
mod places;
mod remembered;
mod shared;
mod support;
mod told;

use std::time::Duration;

use callers::{
    ServiceAccountToken,
    review::{ReviewError, ReviewRefusal, ReviewTrouble, Reviewed, Reviewer, ReviewerSettings},
};
use test_support::Reply;

use crate::support::{now, random};
use support::*;

#[tokio::test]
async fn the_api_server_is_asked_as_documented_and_says_who_it_is() {
    let world = World::answering(accepted).await;
    let reviewed = world.review(&token("a")).await.unwrap();
    assert_eq!(reviewed.account.to_string(), SUBJECT);
    assert_eq!(
        (reviewed.uid.as_str(), reviewed.pod.uid.as_str()),
        ("uid-of-account", "uid-of-pod")
    );
    assert_eq!(reviewed.pod.name.as_deref(), Some("runtime-0"));
    let received = world.peer.received();
    let [request] = &received[..] else { panic!("{received:?}") };
    assert_eq!(request.method, "POST");
    assert_eq!(request.target, "/apis/authentication.k8s.io/v1/tokenreviews");
    assert_eq!(request.headers["authorization"], format!("Bearer {REVIEWER}"));
    assert_eq!(request.headers["content-type"], "application/json");
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let expected = serde_json::json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": { "token": token("a").expose(), "audiences": [AUDIENCE] },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn silence_costs_the_budget_and_is_trouble() {
    let world = World::with(Reply::Silence).await;
    let reviewer = world.reviewer_with(|settings| settings.budget = Duration::from_millis(300));
    let late = reviewer.review(&token("a")).await;
    assert!(matches!(late, Err(ReviewError::Trouble(ReviewTrouble::TooLate))), "{late:?}");
}

#[tokio::test]
async fn a_refusal_is_the_callers_and_is_not_remembered() {
    let world =
        World::answering(
            |request| {
                if is_about(request, "a") { refused(request) } else { accepted(request) }
            },
        )
        .await;
    for _ in 0..2 {
        let error = world.review(&token("a")).await.unwrap_err();
        assert!(matches!(error, ReviewError::Refused(ReviewRefusal::Invalid)), "{error:?}");
        world.review(&token("b")).await.unwrap();
    }
    let (a, b) = (token("a"), token("b"));
    assert_eq!(world.asked(), [a.expose(), b.expose(), a.expose()]);
}

#[tokio::test]
async fn what_is_no_answer_is_trouble() {
    let too_large = Reply::json(201, vec![b' '; 64 * 1024 + 1]);
    for reply in [Reply::Cut(Vec::new()), too_large, Reply::Cut(b"SSH-2.0\r\n\r\n".to_vec())] {
        let world = World::with(reply).await;
        let error = world.review(&token("a")).await.unwrap_err();
        let unanswered = |error: &ReviewError| {
            matches!(error, ReviewError::Trouble(ReviewTrouble::Unanswered(_)))
        };
        assert!(unanswered(&error), "{error:?}");
        assert!(unanswered(&world.reviewer.probe().await.unwrap_err()));
    }
    let world = World::with(Reply::html(200)).await;
    let error = world.review(&token("a")).await.unwrap_err();
    assert!(matches!(error, ReviewError::Trouble(ReviewTrouble::NotATokenReview)), "{error:?}");
}

#[tokio::test]
async fn a_kept_connection_that_ends_under_a_review_is_no_trouble() {
    let mut times = 0;
    let world = World::answering(move |request| {
        times += 1;
        if times == 2 { Reply::Cut(Vec::new()) } else { accepted(request) }
    })
    .await;
    let (a, b) = (token("a"), token("b"));
    world.review(&a).await.unwrap();
    world.review(&b).await.unwrap();
    assert_eq!(world.asked(), [a.expose(), b.expose(), b.expose()]);
}

#[tokio::test]
async fn one_budget_is_for_all_of_it() {
    let head = b"HTTP/1.1 201 Created\r\ncontent-length: 900\r\n\r\n".to_vec();
    let pause = Duration::from_millis(10);
    for second in [Reply::Silence, Reply::Drip([head, vec![b' '; 900]].concat(), pause)] {
        // The second try has what the first one left.
        let mut first =
            Some(Reply::Drip(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n".to_vec(), pause));
        let world = World::answering(move |_| first.take().unwrap_or_else(|| second.clone())).await;
        let budget = Duration::from_millis(1500);
        let reviewer = world.reviewer_with(|settings| settings.budget = budget);
        let begun = std::time::Instant::now();
        let late = reviewer.review(&token("a")).await;
        let took = begun.elapsed();
        assert!(matches!(late, Err(ReviewError::Trouble(ReviewTrouble::TooLate))), "{late:?}");
        assert!(budget <= took && took < budget * 2, "{took:?}");
        assert_eq!(world.peer.received().len(), 2);
    }
}

#[tokio::test]
async fn a_probe_asks_about_our_own_token_and_is_well_with_any_review_of_it() {
    for answer in [accepted, refused] {
        let world = World::answering(answer).await;
        world.reviewer.probe().await.unwrap();
        assert_eq!(world.asked(), [REVIEWER]);
    }
    for (status, expected) in [(401, "401"), (403, "403"), (503, "503"), (404, "404")] {
        let world = World::with(Reply::json(status, "{}")).await;
        let ReviewError::Trouble(trouble) = world.reviewer.probe().await.unwrap_err() else {
            panic!("{status}")
        };
        assert!(trouble.to_string().contains(expected), "{trouble}");
    }
    let world = World::with(answer_about("another", good_status())).await;
    let error = world.reviewer.probe().await.unwrap_err();
    assert!(matches!(error, ReviewError::Trouble(ReviewTrouble::OtherToken)), "{error:?}");
}
