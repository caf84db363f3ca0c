//! Results on their way in: stored once, acknowledged again, never replaced.

use serde_json::{Value, json};

use crate::support::{Answer, Api, FIRST_SESSION, SECOND_SESSION, dump};

const BODY: &[u8] = br#"{"outcome":"succeeded","detail":"done","output":{"a": [1.0, 1e2]}}"#;

/// SHA-256 of [`BODY`], computed by `sha256sum`.
const BODY_DIGEST: &str = "1f61665dc5e1e8197b62b4a6682f3fe6b8492ee53cf637b664b3c30167176ed1";

fn receipt(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

#[tokio::test]
async fn a_result_is_stored_once_and_acknowledged_with_the_same_receipt() {
    let (api, ids) = Api::with_commands(2).await;
    let first = receipt(&api.send(&api.result(&ids[0], BODY)).await, 201);
    assert_eq!(first["commandId"], ids[0].as_str());
    assert_eq!((&first["seq"], &first["outcome"]), (&json!(1), &json!("succeeded")));
    assert_eq!(first["digest"], BODY_DIGEST);
    let before = dump(&api.sql().await).await;
    for _ in 0..2 {
        let again = receipt(&api.send(&api.result(&ids[0], BODY)).await, 200);
        assert_eq!(again, first);
    }
    assert_eq!(dump(&api.sql().await).await, before, "a repetition changes nothing");
}

#[tokio::test]
async fn white_space_around_a_result_does_not_make_it_another() {
    let (api, ids) = Api::with_commands(1).await;
    let first = receipt(&api.send(&api.result(&ids[0], BODY)).await, 201);
    for (before, after) in [(" ", "\n"), ("", "\r\n\r\n"), ("\t\n ", "")] {
        let body = [before.as_bytes(), BODY, after.as_bytes()].concat();
        assert_eq!(receipt(&api.send(&api.result(&ids[0], &body)).await, 200), first);
    }
}

#[tokio::test]
async fn any_other_byte_makes_it_another_result() {
    let (api, ids) = Api::with_commands(1).await;
    receipt(&api.send(&api.result(&ids[0], BODY)).await, 201);
    let before = dump(&api.sql().await).await;
    let text = std::str::from_utf8(BODY).unwrap();
    for other in [
        text.replace(", 1e2", ",1e2"),
        text.replace("1.0", "1.00"),
        text.replace("1e2", "100"),
        text.replace("done", "d\\u006fne"),
        text.replace("succeeded", "failed"),
        text.replace(r#""detail":"done","#, ""),
        r#"{"outcome":"rejected"}"#.to_owned(),
    ] {
        let answer = api.send(&api.result(&ids[0], other.as_bytes())).await;
        assert_eq!(answer.code(), "result_conflict", "{other}");
        assert_eq!(answer.json()["storedDigest"], BODY_DIGEST);
    }
    assert_eq!(dump(&api.sql().await).await, before);
}

#[tokio::test]
async fn a_result_before_its_predecessors_is_told_how_far_the_stream_is() {
    let (api, ids) = Api::with_commands(3).await;
    for (done, due) in [(0, 2), (1, 2)] {
        let answer = api.send(&api.result(&ids[due], BODY)).await;
        let problem = answer.problem();
        assert_eq!((problem.code.as_str(), problem.retryable), ("predecessor_missing", true));
        assert_eq!(answer.json()["doneSeq"], done);
        receipt(&api.send(&api.result(&ids[done], BODY)).await, 201);
    }
    receipt(&api.send(&api.result(&ids[2], BODY)).await, 201);
}

#[tokio::test]
async fn a_result_for_no_command_of_the_stream_is_not_found() {
    let (api, _) = Api::with_commands(1).await;
    let unknown = format!("cmd_{}", "0".repeat(32));
    for id in [&unknown, "cmd_", "k1", "1", &unknown.replace('0', "u")] {
        assert_eq!(api.send(&api.result(id, BODY)).await.code(), "not_found", "{id}");
    }
}

#[tokio::test]
async fn a_stale_generation_stores_nothing_but_is_told_what_it_stored_before() {
    let (api, ids) = Api::with_commands(2).await;
    let stored = receipt(&api.send(&api.result(&ids[0], BODY)).await, 201);
    api.open_session(FIRST_SESSION, 1).await;
    let sql = api.sql().await;
    let before = dump(&sql).await;
    assert_eq!(receipt(&api.send(&api.result(&ids[0], BODY)).await, 200), stored);
    let of = |generation, session| api.result(&ids[1], BODY).writer(generation, session);
    for request in [api.result(&ids[1], BODY), of(2, SECOND_SESSION)] {
        let answer = api.send(&request).await;
        assert_eq!(answer.code(), "stale_generation");
        assert_eq!(answer.json()["generation"], 2);
    }
    let answer = api.send(&of(3, FIRST_SESSION)).await;
    assert_eq!(answer.code(), "history_diverged", "a generation that never was");
    assert_eq!(answer.json()["generation"], 2);
    assert_eq!(dump(&sql).await, before);
    receipt(&api.send(&of(2, FIRST_SESSION)).await, 201);
}

#[tokio::test]
async fn a_body_that_is_no_result_is_told_why() {
    let (api, ids) = Api::with_commands(1).await;
    let before = dump(&api.sql().await).await;
    let long = format!(r#"{{"outcome":"failed","detail":"{}"}}"#, "x".repeat(4097));
    for (body, code) in [
        ("", "malformed_body"),
        ("[]", "malformed_body"),
        ("null", "malformed_body"),
        (r#""succeeded""#, "malformed_body"),
        (r#"{"outcome":"failed"} {}"#, "malformed_body"),
        (r#"{"outcome":"failed",}"#, "malformed_body"),
        (r#"{'outcome':'failed'}"#, "malformed_body"),
        ("{}", "invalid_request"),
        (r#"{"outcome":null}"#, "invalid_request"),
        (r#"{"outcome":"Succeeded"}"#, "invalid_request"),
        (r#"{"outcome":"failed","outcome":"failed"}"#, "invalid_request"),
        (r#"{"outcome":"failed","detail":null}"#, "invalid_request"),
        (r#"{"outcome":"failed","output":1,"output":1}"#, "invalid_request"),
        (&long, "invalid_request"),
    ] {
        let answer = api.send(&api.result(&ids[0], body.as_bytes())).await;
        assert_eq!(answer.code(), code, "{body:.60}");
    }
    assert_eq!(dump(&api.sql().await).await, before);
}
