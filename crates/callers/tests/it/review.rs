//! Reviews against a peer that answers as a real kube-apiserver 1.36 was seen to answer, or badly.

mod support;

use std::time::Duration;

use callers::review::{ReviewError, ReviewRefusal, ReviewTrouble};
use test_support::Reply;

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
async fn a_rotated_token_of_the_reviewer_is_used_at_once_and_kept_while_its_file_is_unusable() {
    let world = World::answering(refused).await;
    for (file, used) in [("second \n", "second"), ("", "second"), ("third", "third")] {
        std::fs::write(world.token_file(), file).unwrap();
        assert!(world.review(&token("a")).await.is_err());
        let sent = world.peer.received().last().unwrap().headers["authorization"].clone();
        assert_eq!(sent, format!("Bearer {used}"));
    }
    std::fs::remove_file(world.folder.path().join("token")).unwrap();
    assert!(world.review(&token("a")).await.is_err());
    assert_eq!(world.peer.received().last().unwrap().headers["authorization"], "Bearer third");
}
