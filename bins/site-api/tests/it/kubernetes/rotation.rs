//! Our reviewer's token and the cluster's CA change under the running process.

use std::time::Duration;

use test_support::{Fault, eventually};

use crate::support::{Api, Cluster, LONG, Place};

async fn in_cluster() -> (Api, Cluster) {
    let place = Place::prepare().await;
    // The server keeps nothing, so that a token that it forgot is refused at once.
    let cluster = Cluster::keeping(&place, Duration::ZERO).await;
    (place.start_in(&cluster).await, cluster)
}

#[tokio::test]
async fn a_rotated_token_of_the_reviewer_is_used_at_once() {
    let (api, cluster) = in_cluster().await;
    assert_eq!(api.answer_to(&cluster.token()).await.status, 200);
    for _ in 0..3 {
        cluster.rotate_reviewer();
        assert_eq!(api.answer_to(&cluster.token()).await.status, 200);
        let received = cluster.api.received();
        let by = &received.last().unwrap().headers["authorization"];
        assert_eq!(*by, format!("Bearer {}", cluster.reviewer()));
    }
    assert_eq!(api.alarms().await, [""; 0]);
}

#[tokio::test]
async fn a_token_of_the_reviewer_that_is_refused_is_an_alarm_until_there_is_another() {
    let (api, cluster) = in_cluster().await;
    cluster.api.forget(&cluster.reviewer());
    let token = cluster.token();
    assert_eq!(api.answer_to(&token).await.code(), "token_review_unavailable");
    assert!(api.review_alarm().await.unwrap().contains("our reviewer's token (401)"));
    cluster.rotate_reviewer();
    assert_eq!(api.answer_to(&token).await.status, 200);
    eventually(LONG, "the end", async || api.review_alarm().await.is_none().then_some(())).await;
}

#[tokio::test]
async fn another_authority_is_trusted_when_its_certificate_is_projected() {
    let (api, cluster) = in_cluster().await;
    assert_eq!(api.answer_to(&cluster.token()).await.status, 200);
    cluster.change_authority();
    let token = cluster.token();
    assert_eq!(api.answer_to(&token).await.code(), "token_review_unavailable");
    let reason = api.review_alarm().await.unwrap();
    assert!(reason.contains("certificate"), "{reason}");
    cluster.swap();
    assert_eq!(api.answer_to(&token).await.status, 200);
}

/// Whenever it is cut: before the next review, or under it.
#[tokio::test]
async fn connections_that_the_api_server_ends_cost_nobody_anything() {
    let (api, cluster) = in_cluster().await;
    for _ in 0..5 {
        // All that are kept.
        let [a, b, c, d] = [(); 4].map(|()| cluster.token());
        let answers = tokio::join!(
            api.answer_to(&a),
            api.answer_to(&b),
            api.answer_to(&c),
            api.answer_to(&d)
        );
        let (a, b, c, d) = answers;
        assert_eq!([a, b, c, d].map(|answer| answer.status), [200; 4]);
        cluster.api.cut_connections();
        assert_eq!(api.answer_to(&cluster.token()).await.status, 200);
    }
    assert_eq!(api.alarms().await, [""; 0]);
    // What is cut each time is trouble.
    cluster.api.fail(Some(Fault::Cut));
    assert_eq!(api.answer_to(&cluster.token()).await.code(), "token_review_unavailable");
}
