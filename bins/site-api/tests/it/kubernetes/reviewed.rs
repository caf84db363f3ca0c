//! Who is let in by a review, and who is not.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{TokenRequest, eventually};

use crate::support::{
    ADMISSION, Answer, Api, Caller, Case, Cluster, LONG, NAMESPACE, OURS, POD, Place, RUNTIME,
    STRANGER, subject,
};

/// A running `site-api` in a cluster, and the ids of its stream's commands.
async fn in_cluster(commands: usize) -> (Api, Cluster, Vec<String>) {
    let place = Place::prepare().await;
    let ids = place.enqueue(&vec!["{}"; commands]);
    let cluster = Cluster::beside(&place).await;
    (place.start_in(&cluster).await, cluster, ids)
}

/// What is left of a problem that belongs to every request of its kind.
fn without_id(answer: &Answer) -> Value {
    answer.problem();
    let mut body = answer.json();
    body.as_object_mut().unwrap().remove("requestId").unwrap();
    body
}

#[tokio::test]
async fn a_runtimes_token_does_on_every_route_what_a_native_bearer_does() {
    let (api, cluster, ids) = in_cluster(3).await;
    let token = cluster.token();
    for case in Case::granted() {
        let request = case.idle_request(&ids[2]);
        let told = |answer: &Answer| (answer.status, answer.json().get("code").cloned());
        let native = told(&api.send(&request.clone().bearer(&api.bearer())).await);
        let reviewed = told(&api.send(&request.bearer(&token)).await);
        assert_eq!(reviewed, native, "{case:?}");
    }
    let page = api.answer_to(&token).await.json();
    assert_eq!(page["commands"].as_array().unwrap().len(), 3, "{page}");
    let result = api.result(&ids[0], br#"{"outcome":"succeeded"}"#).without("authorization");
    assert_eq!(api.send(&result.bearer(&token)).await.status, 201);
    assert_eq!(cluster.api.reviews_of(&token), 1, "one review for all of it");
    assert_eq!(api.alarms().await, [""; 0]);
}

#[tokio::test]
async fn the_log_names_the_subject_of_whoever_calls() {
    let (api, cluster, _) = in_cluster(0).await;
    assert_eq!(api.answer_to(&cluster.token()).await.status, 200);
    let line = |line: &str| line.contains("\"request.answered\"");
    let line = api.process.wait_for_line("the request", LONG, line).await;
    let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
    assert_eq!(line["span"]["caller.principal"], subject(RUNTIME).as_str(), "{line}");
}

#[tokio::test]
async fn the_map_alone_decides_which_stream_is_an_accounts() {
    let place = Place::prepare().await;
    place.enqueue(&["{}"]);
    let cluster = Cluster::beside(&place).await;
    let mut command = place.command();
    cluster.settings(&mut command);
    let map = json!({ subject(RUNTIME): "k8s", subject(STRANGER): "slurm" });
    command.env("SITE_API_GRANTS_JSON", map.to_string());
    let api = place.start_by(command).await;
    for (account, commands) in [(RUNTIME, 0), (STRANGER, 1)] {
        let page = api.answer_to(&cluster.token_of(account, OURS)).await.json();
        assert_eq!(page["commands"].as_array().unwrap().len(), commands, "{account}: {page}");
    }
}

/// The rows of what a real API server answers to a token that is not good here, and accounts that
/// are granted nothing.
#[tokio::test]
async fn everybody_whom_the_cluster_does_not_vouch_for_gets_the_same_401_and_raises_no_alarm() {
    let (api, cluster, ids) = in_cluster(1).await;
    let good = cluster.token();
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let tampered = format!("{signed}.{}", signature.chars().rev().collect::<String>());
    let kube = &cluster.api;
    let request = || TokenRequest::new(NAMESPACE, RUNTIME, OURS);
    kube.create_pod(NAMESPACE, "short-lived");
    let of_a_pod_that_is_gone = kube.issue(request().pod("short-lived"));
    kube.delete_pod(NAMESPACE, "short-lived");
    kube.create_account(NAMESPACE, "made-again");
    let of_an_account_that_was_made_again = cluster.token_of("made-again", OURS);
    kube.create_account(NAMESPACE, "made-again");
    kube.create_account("elsewhere", RUNTIME);
    kube.create_pod("elsewhere", POD);
    let namesake = kube.issue(TokenRequest::new("elsewhere", RUNTIME, OURS).pod(POD));
    let forged = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.c2lnbmVk";
    let tokens = [
        ("garbage of its form", forged.to_owned(), "does not know the token"),
        ("tampered with", tampered, "does not know the token"),
        (
            "for another audience",
            cluster.token_of(RUNTIME, &["vault"]),
            "was made for another audience",
        ),
        (
            "for the API server",
            cluster.token_of(RUNTIME, &[test_support::API_AUDIENCE]),
            "was made for another audience",
        ),
        ("expired", kube.issue(request().pod(POD).life(Duration::ZERO)), "or it has expired"),
        ("bound to no Pod", kube.issue(request()), "is not bound to a Pod"),
        ("of a Pod that is gone", of_a_pod_that_is_gone, "as with its Pod"),
        (
            "of an account that was made again",
            of_an_account_that_was_made_again,
            "was deleted or made again",
        ),
        (
            "of an account that is granted nothing",
            cluster.token_of(STRANGER, OURS),
            "system:serviceaccount:runtimes:stranger is granted nothing here",
        ),
        (
            "of an account of the same name",
            namesake,
            "system:serviceaccount:elsewhere:runtime-slurm is granted nothing here",
        ),
        ("our reviewer's own", cluster.reviewer(), "was made for another audience"),
    ];
    let nobody = api.poll("after=0").without("authorization");
    let expected = without_id(&api.send(&nobody).await);
    for case in Case::granted() {
        for (what, token, reason) in &tokens {
            let answer = api.send(&case.request(&ids[0]).bearer(token)).await;
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{what}");
            assert_eq!(without_id(&answer), expected, "{what}: {case:?}");
            let id = answer.problem().request_id;
            let its = |line: &str| line.contains(&id);
            let line = api.process.wait_for_line("its line", LONG, its).await.unwrap();
            assert!(line.contains(reason), "{what}: {line}");
        }
    }
    assert_eq!(api.alarms().await, [""; 0]);
    assert_eq!(api.answer_to(&good).await.status, 200);
}

#[tokio::test]
async fn of_a_token_for_several_audiences_ours_has_to_be_one() {
    let (api, cluster, _) = in_cluster(0).await;
    let token = cluster.token_of(RUNTIME, &["vault", "site-control"]);
    assert_eq!(api.answer_to(&token).await.status, 200);
}

#[tokio::test]
async fn another_audience_can_be_ours() {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    let mut command = place.command();
    cluster.settings(&mut command);
    command.env("SITE_API_RUNTIME_AUDIENCE", "https://site.example");
    let api = place.start_by(command).await;
    assert_eq!(api.answer_to(&cluster.token()).await.code(), "unauthenticated");
    let token = cluster.token_of(RUNTIME, &["https://site.example"]);
    assert_eq!(api.answer_to(&token).await.status, 200);
}

#[tokio::test]
async fn an_admission_account_is_forbidden_every_command_route_and_changes_nothing() {
    let (api, cluster, ids) = in_cluster(1).await;
    let token = cluster.token_of(ADMISSION, OURS);
    let sql = api.sql().await;
    let before = crate::support::dump(&sql).await;
    for case in Case::of(Caller::Runtime) {
        let answer = api.send(&case.request(&ids[0]).bearer(&token)).await;
        assert_eq!(answer.code(), "forbidden", "{case:?}");
    }
    assert_eq!(crate::support::dump(&sql).await, before);
}

#[tokio::test]
async fn nobody_from_the_cluster_is_looked_up_in_any_storage_before_the_right_is_known() {
    let (api, cluster, ids) = in_cluster(1).await;
    api.without_storage().await;
    for (account, code) in [(ADMISSION, "forbidden"), (STRANGER, "unauthenticated")] {
        let token = cluster.token_of(account, OURS);
        for case in Case::of(Caller::Runtime) {
            let answer = api.send(&case.request(&ids[0]).bearer(&token)).await;
            assert_eq!(answer.code(), code, "{case:?}");
        }
    }
    assert_eq!(api.answer_to(&cluster.token()).await.code(), "internal", "who is let in meets it");
}

#[tokio::test]
async fn a_listener_without_reviews_takes_no_such_token_and_asks_nobody() {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    let api = place.start().await;
    assert_eq!(api.answer_to(&cluster.token()).await.code(), "unauthenticated");
    assert_eq!(cluster.api.received().len(), 0);
    assert_eq!(api.alarms().await, [""; 0]);
}

#[tokio::test]
async fn thirty_two_first_requests_at_once_cause_one_review() {
    let (api, cluster, _) = in_cluster(0).await;
    let token = cluster.token();
    cluster.api.hold();
    let requests: Vec<_> = (0..32)
        .map(|_| {
            let (wire, request) = (api.wire.clone(), api.poll_by(&token, "after=0"));
            tokio::spawn(async move { wire.send(&request).await })
        })
        .collect();
    eventually(LONG, "31 who join", async || {
        (api.metric("token_reviews_joined_total").await >= 31.0).then_some(())
    })
    .await;
    cluster.api.release();
    for request in requests {
        assert_eq!(request.await.unwrap().status, 200);
    }
    assert_eq!(cluster.api.reviews_of(&token), 1);
}

#[tokio::test]
async fn a_listener_with_accounts_alone_names_no_site() {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    let mut command = place.command();
    cluster.settings(&mut command);
    command.env_remove("SITE_API_SITE_ID").env_remove("SITE_API_NATIVE_GRANTS_FILE");
    let api = place.start_by(command).await;
    let lines = api.process.lines();
    assert!(lines.iter().any(|line| line.text.contains("\"site.id\":\"default\"")));
    assert_eq!(api.answer_to(&cluster.token()).await.status, 200);
}
