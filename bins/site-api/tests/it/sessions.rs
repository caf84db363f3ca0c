//! Sessions: a Runtime that starts takes the stream over, and the one before it is told.

use serde_json::{Value, json};

use crate::support::{Api, FIRST_SESSION, LONG, SECOND_SESSION, dump};

const BODY: &[u8] = br#"{"outcome":"succeeded"}"#;

/// What is the same for each repetition but for the time.
fn state(session: &Value) -> Value {
    let mut state = session.clone();
    assert!(state.as_object_mut().unwrap().remove("serverTime").is_some(), "{session}");
    state
}

#[tokio::test]
async fn a_session_is_opened_once_and_answered_again_with_the_state_as_it_is() {
    let (api, ids) = Api::with_commands(2).await;
    let page = api.send(&api.poll("after=0&limit=1")).await.json();
    let answer = api.send(&api.session(FIRST_SESSION, 1)).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let mut expected = json!({
        "sessionId": FIRST_SESSION, "generation": 2, "lastSeq": 2,
        "doneSeq": 0, "doneDigest": "0".repeat(64),
    });
    assert_eq!(state(&answer.json()), expected);
    let before = dump(&api.sql().await).await;
    // Whatever it expects: the answer was lost, or the Runtime asks twice.
    for expects in [1, 2, 7] {
        let answer = api.send(&api.session(FIRST_SESSION, expects)).await;
        assert_eq!((answer.status, state(&answer.json())), (200, expected.clone()));
    }
    assert_eq!(dump(&api.sql().await).await, before, "a repetition changes nothing");

    let result = api.result(&ids[0], BODY).writer(2, FIRST_SESSION);
    assert_eq!(api.send(&result).await.status, 201);
    expected["doneSeq"] = json!(1);
    expected["doneDigest"] = page["nextDigest"].clone();
    assert_eq!(state(&api.send(&api.session(FIRST_SESSION, 1)).await.json()), expected);
}

#[tokio::test]
async fn a_stream_without_a_command_is_taken_over_as_well() {
    let (api, _) = Api::with_commands(0).await;
    let session = api.open_session(FIRST_SESSION, 1).await;
    assert_eq!((&session["generation"], &session["lastSeq"]), (&json!(2), &json!(0)));
    let poll = api.parked_as(api.poll("after=0&wait=25").writer(2, FIRST_SESSION)).await;
    let ids = api.place.enqueue(&["{}"]);
    let page = tokio::time::timeout(LONG, poll).await.unwrap().unwrap().json();
    assert_eq!(page["commands"][0]["commandId"], ids[0].as_str());
}

#[tokio::test]
async fn a_lost_comparison_and_a_superseded_session_are_told_the_generation() {
    let (api, _) = Api::with_commands(1).await;
    let early = api.send(&api.session(FIRST_SESSION, 2)).await;
    assert_eq!(early.code(), "stale_generation");
    assert_eq!(early.json()["generation"], 1);
    api.open_session(FIRST_SESSION, 1).await;
    let late = api.send(&api.session(SECOND_SESSION, 1)).await;
    assert_eq!(late.code(), "stale_generation");
    assert_eq!(late.json()["generation"], 2);
    api.open_session(SECOND_SESSION, 2).await;
    let before = dump(&api.sql().await).await;
    for expects in [1, 2, 3] {
        let answer = api.send(&api.session(FIRST_SESSION, expects)).await;
        assert_eq!(answer.code(), "session_superseded");
        assert_eq!(answer.json()["generation"], 3);
    }
    assert_eq!(dump(&api.sql().await).await, before);
}

#[tokio::test]
async fn a_take_over_answers_the_poll_that_waits() {
    let (api, _) = Api::with_commands(0).await;
    let poll = api.parked(api.poll("after=0&wait=25")).await;
    api.open_session(FIRST_SESSION, 1).await;
    let answer = tokio::time::timeout(LONG, poll).await.unwrap().unwrap();
    assert_eq!(
        (answer.code().as_str(), &answer.json()["generation"]),
        ("stale_generation", &json!(2))
    );

    let poll = api.parked_as(api.poll("after=0&wait=25").writer(2, FIRST_SESSION)).await;
    api.open_session(SECOND_SESSION, 2).await;
    let answer = tokio::time::timeout(LONG, poll).await.unwrap().unwrap();
    assert_eq!(
        (answer.code().as_str(), &answer.json()["generation"]),
        ("stale_generation", &json!(3))
    );
}

#[tokio::test]
async fn of_many_that_start_at_once_one_takes_the_stream_over() {
    let (api, _) = Api::with_commands(1).await;
    let requests: Vec<_> =
        (0..32).map(|number| api.session(&format!("one-of-many-sessions-{number}"), 1)).collect();
    let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(requests.len()));
    let mut calls = tokio::task::JoinSet::new();
    for request in requests {
        let (wire, barrier) = (api.wire.clone(), barrier.clone());
        calls.spawn(async move {
            barrier.wait().await;
            wire.send(&request).await
        });
    }
    let answers = calls.join_all().await;
    let opened = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(opened, 1, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(
            (answer.code().as_str(), &answer.json()["generation"]),
            ("stale_generation", &json!(2))
        );
    }
}

#[tokio::test]
async fn every_wrong_field_of_a_session_is_named_at_once() {
    let (api, _) = Api::with_commands(0).await;
    let before = dump(&api.sql().await).await;
    let long = "x".repeat(65);
    for (body, fields) in [
        ("{}", &["expectedGeneration", "sessionId"][..]),
        (
            r#"{"sessionId":"short","expectedGeneration":0,"x":1}"#,
            &["expectedGeneration", "sessionId", "x"],
        ),
        (&format!(r#"{{"sessionId":"{long}","expectedGeneration":1}}"#), &["sessionId"]),
        (r#"{"sessionId":"sixteen.of.these","expectedGeneration":1}"#, &["sessionId"]),
        (r#"{"sessionId":7,"expectedGeneration":"1"}"#, &["expectedGeneration", "sessionId"]),
        (r#"{"sessionId":"sixteen-of-these","expectedGeneration":1.0}"#, &["expectedGeneration"]),
        (
            r#"{"sessionId":"sixteen-of-these","expectedGeneration":9223372036854775808}"#,
            &["expectedGeneration"],
        ),
        (
            r#"{"sessionId":"sixteen-of-these","expectedGeneration":1,"expectedGeneration":1}"#,
            &["expectedGeneration"],
        ),
    ] {
        let answer = api.send(&api.session("", 1).body(body.as_bytes())).await;
        let problem = answer.problem();
        let named: Vec<_> = problem.fields.iter().map(|field| field.field.as_str()).collect();
        assert_eq!(
            (problem.code.as_str(), named.as_slice()),
            ("invalid_request", fields),
            "{body}"
        );
    }
    assert_eq!(dump(&api.sql().await).await, before);
}
