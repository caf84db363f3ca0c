//! What is our matter, or the cluster's: an alarm and 503, never the caller's 401.

use std::time::Duration;

use test_support::{Fault, eventually, free_port};
use tokio::time::Instant;

use crate::support::{Api, Cluster, LONG, Place};

/// A running `site-api` whose reviews have a second each.
async fn in_cluster() -> (Api, Cluster) {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    let mut command = place.command();
    cluster.settings(&mut command);
    command.env("SITE_API_TOKEN_REVIEW_SECONDS", "1");
    (place.start_by(command).await, cluster)
}

async fn no_alarm(api: &Api) {
    let what = "the end of the alarm";
    eventually(LONG, what, async || api.review_alarm().await.is_none().then_some(())).await;
}

#[tokio::test]
async fn each_fault_is_503_with_its_reason_in_the_log_and_an_alarm_which_goes_by_itself() {
    let (api, cluster) = in_cluster().await;
    let mut failed = Instant::now();
    for (fault, reason) in [
        (Fault::CallerUnknown, "does not know our reviewer's token (401)"),
        (Fault::CallerForbidden, "may not create tokenreviews (403)"),
        (Fault::TooManyRequests, "status 429"),
        (Fault::Internal, "status 500"),
        (Fault::Html, "no TokenReview"),
        (Fault::SlowDrip, "no answer in time"),
        (Fault::EmptyBody, "without a body"),
        (Fault::HugeBody, "no usable answer"),
        (Fault::AnotherToken, "about another token"),
        (Fault::Silence, "no answer in time"),
        (Fault::Cut, "no usable answer"),
    ] {
        cluster.api.fail(Some(fault));
        let token = cluster.token();
        let problem = api.answer_to(&token).await.problem();
        let told = (problem.code.as_str(), problem.retryable);
        assert_eq!(told, ("token_review_unavailable", true), "{fault:?}");
        failed = Instant::now();
        let id = problem.request_id;
        let line = api.process.wait_for_line("its line", LONG, |line| line.contains(&id)).await;
        let line = line.unwrap();
        assert!(line.contains(reason), "{fault:?}: {line}");
        assert!(api.review_alarm().await.is_some(), "{fault:?}");
        // Who needs no review is served.
        assert_eq!(api.send(&api.poll("after=0")).await.status, 200, "{fault:?}");
        cluster.api.fail(None);
        assert_eq!(api.answer_to(&token).await.status, 200, "{fault:?}");
    }
    no_alarm(&api).await;
    // 15 s from when it failed, which was just before it was told.
    assert!(failed.elapsed() > Duration::from_secs(14), "after {:?}", failed.elapsed());
}

#[tokio::test]
async fn a_yes_without_our_audience_is_the_callers_401_and_no_alarm() {
    let (api, cluster) = in_cluster().await;
    cluster.api.fail(Some(Fault::NoAudiences));
    assert_eq!(api.answer_to(&cluster.token()).await.code(), "unauthenticated");
    assert_eq!(api.review_alarm().await, None);
}

#[tokio::test]
async fn trouble_is_told_at_the_start_before_anybody_calls() {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    cluster.api.fail(Some(Fault::CallerForbidden));
    let api = place.start_in(&cluster).await;
    eventually(LONG, "the alarm", async || api.review_alarm().await).await;
    cluster.api.fail(None);
    no_alarm(&api).await;
    // Only our own token was ever asked about.
    let received = cluster.api.received().len();
    assert_eq!(cluster.api.reviews_of(&cluster.reviewer()), received);
}

#[tokio::test]
async fn an_api_server_that_is_away_does_not_refuse_the_start() {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    let mut command = place.command();
    cluster.settings(&mut command);
    let nobody = format!("https://127.0.0.1:{}", free_port().unwrap());
    command.env("SITE_API_TOKEN_REVIEW_URL", nobody);
    let api = place.start_by(command).await;
    eventually(LONG, "the alarm", async || api.review_alarm().await).await;
    let token = cluster.token();
    assert_eq!(api.answer_to(&token).await.code(), "token_review_unavailable");
    assert_eq!(api.send(&api.poll("after=0")).await.status, 200);
}

#[tokio::test]
async fn a_caller_who_was_reviewed_just_now_is_served_meanwhile_and_does_not_end_the_alarm() {
    let (api, cluster) = in_cluster().await;
    let (cached, fresh) = (cluster.token(), cluster.token());
    assert_eq!(api.answer_to(&cached).await.status, 200);
    cluster.api.fail(Some(Fault::Internal));
    assert_eq!(api.answer_to(&fresh).await.code(), "token_review_unavailable");
    assert_eq!(api.answer_to(&cached).await.status, 200);
    assert!(api.review_alarm().await.is_some());
    // Until the time of its review is over, and never as a 401.
    let code = eventually(LONG, "the end of its time", async || {
        let answer = api.answer_to(&cached).await;
        (answer.status != 200).then(|| answer.code())
    });
    assert_eq!(code.await, "token_review_unavailable");
}

#[tokio::test]
async fn an_alarm_that_stays_is_told_once_and_asks_the_server_little() {
    let (api, cluster) = in_cluster().await;
    // The one question of the start.
    eventually(LONG, "the first probe", async || (cluster.api.received().len() == 1).then_some(()))
        .await;
    // Reasons that take turns are no news.
    for fault in [Fault::Internal, Fault::CallerForbidden, Fault::Html, Fault::Internal] {
        cluster.api.fail(Some(fault));
        assert_eq!(api.answer_to(&cluster.token()).await.code(), "token_review_unavailable");
        assert!(api.review_alarm().await.unwrap().contains("status 500"), "{fault:?}");
    }
    let asked = cluster.api.received().len();
    let began = Instant::now();
    eventually(LONG, "three probes", async || {
        (cluster.api.received().len() >= asked + 3).then_some(())
    })
    .await;
    assert!(began.elapsed() > Duration::from_secs(5), "after {:?}", began.elapsed());
    let lines = api.process.lines();
    let told = lines.iter().filter(|line| line.text.contains("\"alarm.raised\"")).count();
    assert_eq!(told, 1, "{lines:#?}");
}
