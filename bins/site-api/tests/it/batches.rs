//! Results in batches: each has the verdict that it would have had alone.

use serde_json::{Value, json};

use crate::support::{Answer, Api, FIRST_SESSION, Place, dump};

const DONE: &str = r#"{"outcome":"succeeded"}"#;
const FAILED: &str = r#"{"outcome":"failed","output":[1.0, 1e2]}"#;

/// The status of each result, with the code of its problem.
fn verdicts(answer: &Answer) -> Vec<(u64, String)> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let verdict = |result: &Value| {
        let status = result["status"].as_u64().unwrap();
        assert_ne!(result.get("receipt").is_some(), result.get("problem").is_some(), "{result}");
        assert_eq!(result.get("receipt").is_some(), status < 300, "{result}");
        let code = result["problem"]["code"].as_str().unwrap_or_default();
        (status, code.to_owned())
    };
    answer.json()["results"].as_array().unwrap().iter().map(verdict).collect()
}

fn said(verdicts: &[(u64, &str)]) -> Vec<(u64, String)> {
    verdicts.iter().map(|(status, code)| (*status, (*code).to_owned())).collect()
}

#[tokio::test]
async fn consecutive_results_are_stored_at_once_and_acknowledged_again() {
    let (api, ids) = Api::with_commands(3).await;
    let batch = api.batch(&[(&ids[0], DONE), (&ids[1], FAILED), (&ids[2], DONE)]);
    let first = api.send(&batch).await;
    assert_eq!(verdicts(&first), said(&[(201, ""), (201, ""), (201, "")]));
    for (index, (id, outcome)) in ids.iter().zip(["succeeded", "failed", "succeeded"]).enumerate() {
        let result = &first.json()["results"][index];
        assert_eq!(
            (&result["commandId"], &result["receipt"]["commandId"]),
            (&json!(id), &json!(id))
        );
        assert_eq!(result["receipt"]["outcome"], outcome);
        assert_eq!(result["receipt"]["seq"], index + 1);
    }
    let before = dump(&api.sql().await).await;
    let again = api.send(&batch).await;
    assert_eq!(verdicts(&again), said(&[(200, ""), (200, ""), (200, "")]));
    for index in 0..3 {
        let of = |answer: &Answer| answer.json()["results"][index]["receipt"].clone();
        assert_eq!(of(&again), of(&first));
    }
    assert_eq!(dump(&api.sql().await).await, before);
}

#[tokio::test]
async fn a_result_is_the_same_in_a_batch_and_alone() {
    let (api, ids) = Api::with_commands(2).await;
    let alone = api.send(&api.result(&ids[0], FAILED.as_bytes())).await;
    assert_eq!(alone.status, 201);
    let answer = api.send(&api.batch(&[(&ids[0], FAILED), (&ids[1], FAILED)])).await;
    assert_eq!(verdicts(&answer), said(&[(200, ""), (201, "")]));
    assert_eq!(answer.json()["results"][0]["receipt"], alone.json());
    let alone = api.send(&api.result(&ids[1], FAILED.as_bytes())).await;
    assert_eq!((alone.status, alone.json()), (200, answer.json()["results"][1]["receipt"].clone()));
}

#[tokio::test]
async fn each_result_of_a_batch_has_a_verdict_of_its_own() {
    let (api, ids) = Api::with_commands(6).await;
    assert_eq!(api.send(&api.result(&ids[0], DONE.as_bytes())).await.status, 201);
    let void = "BEGIN;
        UPDATE site_coordination.stream_progress SET done_seq = 2;
        INSERT INTO site_coordination.command_void (site, environment, seq, reason)
        VALUES ('north-1', 'slurm', 2, 'expired');
        COMMIT";
    api.sql().await.batch_execute(void).await.unwrap();
    let unknown = format!("cmd_{}", "0".repeat(32));
    let named = format!(r#"{{"outcome":"failed","privateOutput":"{}"}}"#, "0".repeat(64));
    let answer = api
        .send(&api.batch(&[
            (&ids[0], FAILED),
            (&ids[1], DONE),
            (&ids[2], DONE),
            (&unknown, DONE),
            (&ids[4], DONE),
            (&ids[3], &named),
        ]))
        .await;
    let expected = [
        (409, "result_conflict"),
        (409, "already_voided"),
        (201, ""),
        (404, "not_found"),
        (409, "predecessor_missing"),
        (409, "output_missing"),
    ];
    assert_eq!(verdicts(&answer), said(&expected));
    let results = &answer.json()["results"];
    assert!(results[0]["problem"]["storedDigest"].is_string());
    assert!(results[1]["problem"]["voidedAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(results[4]["problem"]["doneSeq"], 3);
    let id = answer.header("x-request-id").unwrap();
    assert_eq!(results[5]["problem"]["requestId"], id);
    assert_eq!(results[5]["problem"]["source"], "site-api");
}

#[tokio::test]
async fn a_batch_of_a_runtime_that_was_taken_over_repeats_and_stores_nothing() {
    let (api, ids) = Api::with_commands(2).await;
    assert_eq!(api.send(&api.result(&ids[0], DONE.as_bytes())).await.status, 201);
    api.open_session(FIRST_SESSION, 1).await;
    let batch = api.batch(&[(&ids[0], DONE), (&ids[1], DONE)]);
    let before = dump(&api.sql().await).await;
    let answer = api.send(&batch.clone().query("next=1")).await;
    assert_eq!(verdicts(&answer), said(&[(200, ""), (409, "stale_generation")]));
    assert_eq!(answer.json()["results"][1]["problem"]["generation"], 2);
    assert!(answer.json().get("next").is_none(), "a poll would be refused");
    assert_eq!(dump(&api.sql().await).await, before);
    let answer = api.send(&batch.writer(2, FIRST_SESSION)).await;
    assert_eq!(verdicts(&answer), said(&[(200, ""), (201, "")]));
}

#[tokio::test]
async fn a_wrong_field_anywhere_refuses_the_whole_batch_and_is_named_by_its_place() {
    let (api, ids) = Api::with_commands(2).await;
    let before = dump(&api.sql().await).await;
    let (first, second) = (&ids[0], &ids[1]);
    let good = format!(r#"{{"commandId":"{first}","result":{DONE}}}"#);
    let deep = format!(r#"{{"outcome":"failed","output":{}{}}}"#, "[".repeat(128), "]".repeat(128));
    for (results, fields) in [
        ("[]".to_owned(), &["results"][..]),
        ("{}".to_owned(), &["results"]),
        (format!("[{}]", vec!["1"; 65].join(",")), &["results"]),
        (format!("[{good},7,[]]"), &["results[1]", "results[2]"]),
        (format!("[{good},{good}]"), &["results[1].commandId"]),
        (
            format!(r#"[{good},{{"x":1}}]"#),
            &["results[1].commandId", "results[1].result", "results[1].x"],
        ),
        (format!(r#"[{{"commandId":"k1","result":{DONE}}}]"#), &["results[0].commandId"]),
        (format!(r#"[{good},{{"commandId":"{second}","result":[]}}]"#), &["results[1].result"]),
        (format!(r#"[{good},{{"commandId":"{second}","result":{deep}}}]"#), &["results[1].result"]),
        (
            format!(r#"[{good},{{"commandId":"{second}","result":{{"outcome":"done","x":1}}}}]"#),
            &["results[1].result.outcome", "results[1].result.x"],
        ),
    ] {
        let body = format!(r#"{{"results":{results}}}"#);
        let answer = api.send(&api.batch(&[]).body(body.as_bytes())).await;
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

#[tokio::test]
async fn a_batch_of_a_whole_page_is_stored() {
    let place = Place::prepare().await;
    let ids = place.enqueue(&["{}"; 65]);
    let api = place.start().await;
    let batch: Vec<_> = ids.iter().map(|id| (id.as_str(), DONE)).collect();
    assert_eq!(api.send(&api.batch(&batch)).await.code(), "invalid_request");
    let answer = api.send(&api.batch(&batch[..64]).query("next=64")).await;
    assert!(verdicts(&answer).iter().all(|(status, _)| *status == 201));
    assert_eq!(answer.json()["next"]["commands"][0]["seq"], 65);
}
