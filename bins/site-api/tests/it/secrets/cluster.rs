//! Tokens of a cluster: those of callers, which the API server echoes back, and our reviewer's own.

use std::fs;

use test_support::{Fault, Process, eventually};

use super::Told;
use crate::support::{
    ADMISSION, Api, CASES, Cluster, LONG, OURS, Place, RUNTIME, Request, STRANGER, plain,
};

/// The whole token, and each of its parts: a log that cuts it short tells it as well.
fn secrets(told: &mut Told, token: &str) {
    let parts = token.split('.').skip(1).map(str::to_owned);
    told.secrets.extend(parts.chain([token.to_owned()]));
}

/// Every kind of token at every route.
async fn call(told: &mut Told, api: &Api, tokens: &[String]) {
    for case in CASES {
        for token in tokens {
            // The id of no command, so that nothing of a stream is in an answer.
            let request = case.idle_request("cmd_00000000000000000000000000000000");
            let answer = api.send(&request.bearer(token)).await;
            told.answer(case.pattern, &answer);
        }
    }
    for path in ["/metrics", "/alarms"] {
        told.answer(path, &plain(api.admin, &Request::new("GET", path)).await);
    }
}

#[tokio::test]
async fn nobody_is_told_a_token_of_a_cluster_whatever_its_api_server_answers() {
    let mut told = Told::default();
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    let mut command = place.command();
    cluster.settings(&mut command);
    command
        .env("SITE_API_LOG", "trace")
        .env("SITE_API_TOKEN_REVIEW_SECONDS", "1")
        .env("SITE_API_TOKEN_REVIEW_CACHE_SECONDS", "1");
    let api = place.start_by(command).await;
    let garbage = "eyJhbGciOiJub25lIn0.eyJzZWNyZXQiOiJvZi1hLWNhbGxlciJ9.c2lnbmVkLWJ5LW5vYm9keQ";
    let tokens = || {
        vec![
            cluster.token(),
            cluster.token_of(RUNTIME, &["vault"]),
            cluster.token_of(ADMISSION, OURS),
            cluster.token_of(STRANGER, OURS),
            garbage.to_owned(),
        ]
    };
    let mut all = tokens();
    call(&mut told, &api, &all).await;
    let waiting = cluster.token();
    let poll = api.parked(api.poll_by(&waiting, "after=0&wait=25")).await;
    all.push(waiting);
    for fault in [
        Fault::CallerUnknown,
        Fault::CallerForbidden,
        Fault::TooManyRequests,
        Fault::Internal,
        Fault::Html,
        Fault::SlowDrip,
        Fault::EmptyBody,
        Fault::HugeBody,
        Fault::AnotherToken,
        Fault::NoAudiences,
        Fault::Silence,
        Fault::Cut,
    ] {
        cluster.api.fail(Some(fault));
        let token = cluster.token();
        told.answer("a call in trouble", &api.answer_to(&token).await);
        for path in ["/metrics", "/alarms"] {
            told.answer(path, &plain(api.admin, &Request::new("GET", path)).await);
        }
        all.push(token);
    }
    poll.abort();
    cluster.api.fail(None);

    // Our own token: rotated, refused, and files that hold it where something else should be.
    secrets(&mut told, &cluster.reviewer());
    cluster.api.forget(&cluster.reviewer());
    let code = api.answer_to(&cluster.token()).await;
    told.answer("a call without a reviewer", &code);
    cluster.rotate_reviewer();
    secrets(&mut told, &cluster.reviewer());
    let reviewer = cluster.reviewer();
    let more = format!("{reviewer} {reviewer}");
    cluster.project(&[("ca.crt", &reviewer), ("token", &more)]);
    told.answer("a call with useless files", &api.answer_to(&cluster.token()).await);
    eventually(LONG, "what is told of both files", async || {
        let lines = api.process.lines();
        let told = |file: &str| lines.iter().any(|line| line.text.contains(file));
        (told("kubernetes/token") && told("kubernetes/ca.crt")).then_some(())
    })
    .await;
    cluster.swap();
    let fresh = tokens();
    call(&mut told, &api, &fresh).await;
    all.extend(fresh);
    told.process(&api.process);

    // A start with the token in every wrong place.
    let file = api.place.site.file("misplaced");
    fs::write(&file, &more).unwrap();
    for name in [
        "SITE_API_GRANTS_JSON",
        "SITE_API_AUTHORITY_GRANTS_JSON_FILE",
        "SITE_API_TOKEN_REVIEW_CA_FILE",
        "SITE_API_TOKEN_REVIEW_TOKEN_FILE",
    ] {
        let mut command = api.place.command();
        cluster.settings(&mut command);
        command.env_remove("SITE_API_AUTHORITY_GRANTS_JSON").env("SITE_API_LOG", "trace");
        match name {
            "SITE_API_GRANTS_JSON" => command.env(name, format!("{{\"{reviewer}\":\"k8s\"}}")),
            name => command.env(name, &file),
        };
        let refused = Process::start(command).unwrap();
        refused.wait_exit(LONG).await.unwrap();
        told.process(&refused);
    }
    for token in &all {
        secrets(&mut told, token);
    }
    // The header of every token of the cluster is one text, and no secret.
    let lines = told.places.iter().filter(|(place, _)| place == "a log").count();
    assert!(lines > 100, "{lines} lines are too few");
    told.holds_no_secret();
}
