//! From the deletion of an account or a Pod to the refusal: our own time and the server's, one after
//! the other at the worst, and no more.

use std::time::Duration;

use test_support::eventually;
use tokio::time::Instant;

use crate::support::{Api, Cluster, LONG, NAMESPACE, OURS, POD, Place, RUNTIME};

/// Both times at their defaults: a real server keeps a success for 10 s, and we take one again for
/// as long.
const BOTH: Duration = Duration::from_secs(20);
/// For a machine that does something else as well.
const A_LITTLE: Duration = Duration::from_secs(3);

/// The code of the answer to a request that changes nothing and releases no poll: that the command
/// is not there says that the caller was let in.
async fn code(api: &Api, token: &str) -> String {
    let unknown = format!("cmd_{}", "0".repeat(32));
    let result = api.result(&unknown, br#"{"outcome":"failed"}"#).without("authorization");
    api.send(&result.bearer(token)).await.code()
}

/// Asks until the token is refused, and returns when. Until then it is let in.
async fn refused_at(api: &Api, token: &str) -> Instant {
    eventually(LONG, "the refusal", async || {
        let code = code(api, token).await;
        let at = Instant::now();
        if code == "not_found" {
            return None;
        }
        assert_eq!(code, "unauthenticated");
        Some(at)
    })
    .await
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "what was measured")]
async fn a_deleted_account_is_refused_within_our_time_and_the_servers() {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    let api = place.start_in(&cluster).await;
    let (asking, waiting) = (cluster.token(), cluster.token());
    // The worst case: somebody else has asked just before, and we ask just before the server
    // forgets, so that the two times follow each other.
    assert!([&asking, &waiting].iter().all(|token| cluster.api.ask(token, OURS)));
    cluster.api.delete_account(NAMESPACE, RUNTIME);
    let deleted = Instant::now();
    tokio::time::sleep_until(deleted + Duration::from_millis(8_500)).await;
    assert_eq!(code(&api, &asking).await, "not_found", "the server has not seen it yet");
    let begun = deleted.elapsed();
    let poll = api.parked(api.poll_by(&waiting, "after=0&wait=25")).await;

    let polled = async {
        let answer = poll.await.unwrap();
        (answer, Instant::now())
    };
    let (refused, (answer, ended)) = tokio::join!(refused_at(&api, &asking), polled);
    assert_eq!(answer.code(), "unauthenticated");
    let (loop_took, poll_took) = (refused - deleted, ended - deleted);
    println!(
        "asked first after {begun:?}; from the deletion to the refusal: of requests {loop_took:?}, \
         of a poll that waits {poll_took:?}"
    );
    for took in [loop_took, poll_took] {
        assert!(took <= BOTH + A_LITTLE, "{took:?}");
        assert!(took > Duration::from_secs(15), "the worst case was not met: {took:?}");
    }
    assert_eq!(api.alarms().await, [""; 0]);
}

#[tokio::test]
async fn a_deleted_pod_is_refused_within_our_time_and_the_servers() {
    let place = Place::prepare().await;
    let cluster = Cluster::keeping(&place, Duration::from_secs(1)).await;
    let mut command = place.command();
    cluster.settings(&mut command);
    command.env("SITE_API_TOKEN_REVIEW_CACHE_SECONDS", "1");
    let api = place.start_by(command).await;
    let token = cluster.token();
    let poll = api.parked(api.poll_by(&token, "after=0&wait=25")).await;
    assert_eq!(code(&api, &token).await, "not_found");
    cluster.api.delete_pod(NAMESPACE, POD);
    let deleted = Instant::now();
    let refused = refused_at(&api, &token).await - deleted;
    assert!(refused <= Duration::from_secs(2) + A_LITTLE, "{refused:?}");
    assert_eq!(poll.await.unwrap().code(), "unauthenticated");
    let polled = deleted.elapsed();
    assert!(polled <= Duration::from_secs(3) + A_LITTLE, "{polled:?}");
    // The same name is another Pod.
    cluster.api.create_pod(NAMESPACE, POD);
    assert_eq!(code(&api, &token).await, "unauthenticated");
    assert_eq!(api.answer_to(&cluster.token()).await.status, 200);
}
