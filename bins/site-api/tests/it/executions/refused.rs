//! What is refused before anybody is asked: here nobody could be.

use serde_json::json;

use crate::support::{Api, MEMBER, Place, RUN, Request, SITE, changed, run_document};

/// A Run that lacks nothing but the word of Beto.
async fn with_run() -> (Api, String) {
    let place = Place::prepare().await;
    place.accept_and_submit(RUN);
    let binding = place.retain();
    (place.start_with_authority().await, binding)
}

async fn told(api: &Api, request: &Request) -> String {
    api.send(request).await.code()
}

#[tokio::test]
async fn each_reason_has_its_code_and_nobody_is_asked() {
    let (api, binding) = with_run().await;
    let first = api.may_execute(RUN, 1);
    assert_eq!(told(&api, &first).await, "authority_unavailable", "all but that is in order");
    assert_eq!(told(&api, &api.may_execute(RUN, 2)).await, "attempt_unknown");
    assert_eq!(told(&api, &api.may_execute("run-8", 1)).await, "not_found");

    api.place.release(&binding);
    assert_eq!(told(&api, &first).await, "binding_not_retained");
    // Another's, and one elsewhere, are none of this member at this Site.
    api.place.retain_at(SITE, "member-2");
    api.place.retain_at("south-1", MEMBER);
    assert_eq!(told(&api, &first).await, "binding_not_retained");
    api.place.retain();
    assert_eq!(told(&api, &first).await, "authority_unavailable");

    api.place.submit(RUN, 2);
    let answer = api.send(&first).await;
    assert_eq!(
        (answer.code().as_str(), &answer.json()["latestAttempt"]),
        ("attempt_not_current", &json!(2))
    );
    let second = api.may_execute(RUN, 2);
    assert_eq!(told(&api, &second).await, "authority_unavailable");

    let sql = api.sql().await;
    let over = "UPDATE execution_core.attempt SET final_at = clock_timestamp() WHERE number = 2";
    sql.batch_execute(over).await.unwrap();
    assert_eq!(told(&api, &second).await, "attempt_final");

    api.place.control(&["runs", "cancel", RUN]);
    for attempt in [1, 2, 3] {
        assert_eq!(told(&api, &api.may_execute(RUN, attempt)).await, "run_cancelled");
    }
}

#[tokio::test]
async fn from_its_deadline_on_a_run_may_not_execute() {
    let place = Place::prepare().await;
    let past = changed(run_document("run-past"), "/deadline", "2026-01-01T00:00:00Z");
    place.accept(&past.to_string());
    place.submit("run-past", 1);
    place.retain();
    let api = place.start_with_authority().await;
    assert_eq!(told(&api, &api.may_execute("run-past", 1)).await, "deadline_passed");
    assert_eq!(
        told(&api, &api.may_execute("run-past", 2)).await,
        "attempt_unknown",
        "the first reason"
    );
}

#[tokio::test]
async fn every_wrong_field_is_named_at_once() {
    let (api, _) = with_run().await;
    let with = |body: &str| api.may_execute(RUN, 1).body(body.as_bytes());
    for (body, fields) in [
        ("{}", &["action", "attempt"][..]),
        (r#"{"attempt":0,"action":"executes","member":"m"}"#, &["action", "attempt", "member"]),
        (r#"{"attempt":"1","action":7}"#, &["action", "attempt"]),
        (r#"{"attempt":1.0,"action":"execute"}"#, &["attempt"]),
        (r#"{"attempt":01e0,"action":"execute"}"#, &[]),
        (r#"{"attempt":1001,"action":"Execute"}"#, &["action", "attempt"]),
        (r#"{"attempt":-1,"action":"execute"}"#, &["attempt"]),
        (r#"{"attempt":null,"action":null}"#, &["action", "attempt"]),
        (r#"{"attempt":1,"attempt":1,"action":"execute"}"#, &["attempt"]),
        // Where the work meets a repository another caller asks, with each grant.
        (r#"{"attempt":1,"action":"stage_in"}"#, &["action"]),
        (r#"{"attempt":1,"action":"stage_out"}"#, &["action"]),
    ] {
        let problem = api.send(&with(body)).await.problem();
        let expected = if fields.is_empty() { "malformed_body" } else { "invalid_request" };
        assert_eq!(problem.code, expected, "{body}");
        let named: Vec<_> = problem.fields.iter().map(|field| field.field.as_str()).collect();
        assert_eq!(named, fields, "{body}");
    }
    for request in [api.may_execute(RUN, 1), api.read_run(RUN)] {
        let problem = api.send(&request.query("member=m&wait=1")).await.problem();
        let named: Vec<_> = problem.fields.iter().map(|field| field.field.as_str()).collect();
        assert_eq!((problem.code.as_str(), named), ("invalid_request", vec!["member", "wait"]));
    }
}

#[tokio::test]
async fn who_may_not_ask_learns_nothing_of_the_run() {
    let place = Place::prepare().await;
    place.accept_and_submit(RUN);
    place.retain();
    let south =
        place.issue(&["--scope", "commands", "--site", "south-1", "--environment", "slurm"]);
    let agent = place.issue(&["--scope", "ssh-access", "--site", SITE]);
    let api = place.start_with_authority().await;
    for run in [RUN, "run-8"] {
        for request in [api.read_run(run), api.may_execute(run, 1)] {
            let nobody = request.without("authorization");
            for (request, code) in [
                (nobody.clone(), "unauthenticated"),
                (nobody.clone().bearer(&south), "site_mismatch"),
                (nobody.bearer(&agent), "forbidden"),
            ] {
                assert_eq!(told(&api, &request).await, code, "{run}");
            }
        }
    }
}
