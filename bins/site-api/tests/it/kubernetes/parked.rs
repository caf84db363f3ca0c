//! A request that waits is looked at again, and nothing is delivered without a good review.

use std::time::{Duration, Instant};

use serde_json::json;
use test_support::{Fault, eventually};

use crate::support::{Api, Cluster, LONG, Place};

/// A running `site-api` that takes a review again for `cache` seconds. The server keeps nothing, so
/// that each review is a new one.
async fn caching(cache: &str) -> (Api, Cluster) {
    let place = Place::prepare().await;
    let cluster = Cluster::keeping(&place, Duration::ZERO).await;
    let mut command = place.command();
    cluster.settings(&mut command);
    command.env("SITE_API_TOKEN_REVIEW_CACHE_SECONDS", cache);
    (place.start_by(command).await, cluster)
}

#[tokio::test]
async fn a_poll_that_waits_ends_with_401_when_its_token_is_refused() {
    let (api, cluster) = caching("1").await;
    let token = cluster.token();
    let poll = api.parked(api.poll_by(&token, "after=0&wait=25")).await;
    let began = Instant::now();
    cluster.api.forget(&token);
    assert_eq!(poll.await.unwrap().code(), "unauthenticated");
    assert!(began.elapsed() < Duration::from_secs(8), "after {:?}", began.elapsed());
    assert_eq!(api.alarms().await, [""; 0]);
}

#[tokio::test]
async fn a_poll_goes_on_waiting_while_nobody_answers_and_is_served_afterwards() {
    let (api, cluster) = caching("1").await;
    let token = cluster.token();
    let poll = api.parked(api.poll_by(&token, "after=0&wait=25")).await;
    cluster.api.fail(Some(Fault::Internal));
    eventually(LONG, "the look that fails", async || api.review_alarm().await).await;
    cluster.api.fail(None);
    let asked = cluster.api.reviews_of(&token);
    eventually(LONG, "a look that is answered", async || {
        (cluster.api.reviews_of(&token) > asked).then_some(())
    })
    .await;
    assert!(!poll.is_finished());
    api.place.enqueue(&["{}"]);
    let page = poll.await.unwrap().json();
    assert_eq!(page["commands"][0]["seq"], json!(1), "{page}");
}

#[tokio::test]
async fn nothing_is_delivered_while_nobody_answers() {
    let (api, cluster) = caching("1").await;
    let poll = api.parked(api.poll_by(&cluster.token(), "after=0&wait=25")).await;
    cluster.api.fail(Some(Fault::Internal));
    eventually(LONG, "the look that fails", async || api.review_alarm().await).await;
    api.place.enqueue(&["{}"]);
    let answer = poll.await.unwrap();
    assert_eq!(answer.code(), "token_review_unavailable");
    assert!(!answer.text().contains("cmd_"), "{}", answer.text());
}

#[tokio::test]
async fn nothing_is_delivered_to_a_token_that_was_refused_at_the_last_moment() {
    // Nothing is taken again, and a look comes once a second: the command is there before it.
    let (api, cluster) = caching("0").await;
    let token = cluster.token();
    let poll = api.parked(api.poll_by(&token, "after=0&wait=25")).await;
    let asked = cluster.api.reviews_of(&token);
    eventually(LONG, "a look", async || (cluster.api.reviews_of(&token) > asked).then_some(()))
        .await;
    cluster.api.forget(&token);
    api.place.enqueue(&["{}"]);
    let answer = poll.await.unwrap();
    assert_eq!(answer.code(), "unauthenticated");
    assert!(!answer.text().contains("cmd_"), "{}", answer.text());
}

#[tokio::test]
async fn a_poll_that_waits_asks_no_more_often_than_once_a_second() {
    for (cache, range) in [("0", 4..=8), ("2", 2..=5)] {
        let (api, cluster) = caching(cache).await;
        let token = cluster.token();
        let poll = api.parked(api.poll_by(&token, "after=0&wait=25")).await;
        let asked = cluster.api.reviews_of(&token);
        let began = Instant::now();
        eventually(LONG, "six seconds", async || {
            (began.elapsed() > Duration::from_secs(6)).then_some(())
        })
        .await;
        let looks = cluster.api.reviews_of(&token) - asked;
        assert!(range.contains(&looks), "{looks} looks with {cache}");
        poll.abort();
    }
}

#[tokio::test]
async fn an_account_that_was_made_again_is_another_one() {
    let (api, cluster) = caching("1").await;
    let token = cluster.token();
    let poll = api.parked(api.poll_by(&token, "after=0&wait=25")).await;
    cluster.api.create_account(crate::support::NAMESPACE, crate::support::RUNTIME);
    assert_eq!(poll.await.unwrap().code(), "unauthenticated");
    assert_eq!(
        api.answer_to(&cluster.token()).await.status,
        200,
        "the new one is granted the same"
    );
}

#[tokio::test]
async fn a_poll_ends_with_401_when_its_token_is_good_and_anothers() {
    let (api, cluster) = caching("1").await;
    let poll = api.parked(api.poll_by(&cluster.token(), "after=0&wait=25")).await;
    cluster.api.fail(Some(Fault::AnotherUid));
    let answer = poll.await.unwrap();
    assert_eq!(answer.code(), "unauthenticated");
    let id = answer.problem().request_id;
    let line = api.process.wait_for_line("its line", LONG, |line| line.contains(&id)).await;
    let line = line.unwrap();
    assert!(line.contains("the token is another's than when the request began"), "{line}");
    assert_eq!(api.alarms().await, [""; 0]);
}

#[tokio::test]
async fn a_poll_that_waits_is_answered_when_the_process_stops() {
    let (api, cluster) = caching("1").await;
    let poll = api.parked(api.poll_by(&cluster.token(), "after=0&wait=25")).await;
    api.process.signal(rustix::process::Signal::TERM);
    assert_eq!(poll.await.unwrap().status, 200);
    let exit = api.process.wait_exit(LONG).await.unwrap();
    assert_eq!(exit, test_support::process::Exit::Code(0));
}
