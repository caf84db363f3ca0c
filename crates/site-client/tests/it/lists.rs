//! A list of an object's values is not taken for the object, wherever it stands in an answer.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use site_client::{SshCursor, parsers::Success};
use site_protocol::{
    BatchAnswer, CommandPage, OutputReceipt, Problem, Receipt, ReceiptAndNext, SessionRequest,
    SshAcknowledged, SshChange, SshChanges,
};

use super::*;

const TIME: &str = "2024-05-06T07:08:10Z";

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn digest() -> String {
    Digest::ZERO.to_string()
}

/// The values of these objects, in the order in which their types have the fields.
fn receipt_list() -> Value {
    let receipt = value(&receipt("cmd_4", b"{}"));
    ["commandId", "seq", "digest", "outcome", "receivedAt"].map(|name| receipt[name].clone()).into()
}

fn page_list() -> Value {
    let page = value(&page());
    let (commands, digest) = (&page["commands"], &page["nextDigest"]);
    json!([commands, 5, digest, 5, { "seq": 5, "ageSeconds": 0 }, 0, [], TIME, false])
}

/// A page whose part `name` is this.
fn page_with(name: &str, part: Value) -> Value {
    let mut page = value(&page());
    page[name] = part;
    page
}

fn problem_with(fields: Value) -> Value {
    let Reply::Whole { body, .. } = Reply::problem(400, "invalid_request", false) else {
        unreachable!()
    };
    let mut problem: Value = serde_json::from_slice(&body).unwrap();
    problem["fields"] = fields;
    problem
}

fn answer(body: impl fmt::Display) -> Success {
    let body = body.to_string().into();
    Success::of(http::StatusCode::OK, &http::HeaderMap::new(), body).ok().unwrap()
}

fn cursor() -> SshCursor {
    format!("0.{}", digest()).parse().unwrap()
}

fn change_list() -> Value {
    json!([1, "add", "alice", "k1", "m1", "ssh-ed25519 AAAA", null, null, digest()])
}

/// That an answer is refused as one of another form.
#[track_caller]
fn assert_refused<T>(read: Result<T, site_client::CallError>, what: &str) {
    let Err(error) = read else { panic!("{what} is taken") };
    let is_json =
        matches!(error, site_client::CallError::BadAnswer(site_client::BadAnswer::Json { .. }));
    assert!(is_json, "{what}: {error:?}");
}

/// Else the tests below would say nothing: what they send is refused for being a list alone.
#[test]
fn a_derived_reader_would_take_them() {
    fn is_taken<T: DeserializeOwned>(list: &Value) {
        if let Err(error) = serde_json::from_value::<T>(list.clone()) {
            panic!("{list}: {error}");
        }
    }
    is_taken::<Session>(&json!(["an-id", 2, 0, digest(), 0, TIME]));
    is_taken::<Receipt>(&receipt_list());
    is_taken::<CommandPage>(&page_list());
    is_taken::<ReceiptAndNext>(&json!([value(&receipt("cmd_4", b"{}")), null]));
    is_taken::<BatchAnswer>(&json!([[], null]));
    is_taken::<SshChange>(&change_list());
    is_taken::<SshChanges>(&json!([[], cursor().to_string(), cursor().to_string(), TIME, TIME]));
    is_taken::<SshAcknowledged>(&json!([cursor().to_string(), cursor().to_string(), null, TIME]));
    is_taken::<OutputReceipt>(&json!(["cmd_4", digest(), 1, TIME]));
}

#[test]
fn no_list_is_taken_for_an_answer() {
    let request = SessionRequest { session_id: "an-id".to_owned(), expected_generation: 1 };
    let session = answer(json!(["an-id", 2, 0, digest(), 0, TIME]));
    assert_refused(session.session(&request), "a session");
    assert_refused(answer(page_list()).page(&question()), "a page");
    assert_refused(answer(receipt_list()).result(&result(b"{}"), None), "a receipt");
    let both = answer(json!([value(&receipt("cmd_4", b"{}")), null]));
    assert_refused(both.result(&result(b"{}"), Some(&next())), "a receipt and a page");
    assert_refused(answer(json!([[], null])).results(&[], None), "a batch");
    let place = cursor().to_string();
    let changes = answer(json!([[], place, place, TIME, TIME]));
    assert_refused(changes.ssh_changes(cursor(), 1), "changes");
    let acknowledged = answer(json!([place, place, null, TIME]));
    assert_refused(acknowledged.ssh_acknowledged(cursor()), "an acknowledgement");
}

#[test]
fn no_list_is_taken_for_a_part_of_an_answer() {
    assert!(answer(page()).page(&question()).is_ok());
    let command = &value(&page())["commands"][0];
    let fields = ["commandId", "seq", "kind", "runId", "notAfter", "digest", "createdAt"];
    let mut command: Vec<_> = fields.iter().map(|name| command[name].clone()).collect();
    command.extend([false.into(), json!({ "b": 1.0, "a": [] })]);
    for (name, part) in [
        ("commands", json!([command])),
        ("head", json!([5, 0])),
        ("cancelled", json!([["cmd_5", 5]])),
    ] {
        assert_refused(answer(page_with(name, part)).page(&question()), name);
    }
    let receipt = value(&receipt("cmd_4", b"{}"));
    for both in
        [json!({ "receipt": receipt_list() }), json!({ "receipt": receipt, "next": page_list() })]
    {
        let read = answer(&both).result(&result(b"{}"), Some(&next()));
        assert_refused(read, &both.to_string());
    }
    let sent = [result(b"{}")];
    let good = json!({ "commandId": "cmd_4", "status": 201, "receipt": receipt });
    assert!(answer(json!({ "results": [good] })).results(&sent, None).is_ok());
    let problem = problem_with(json!([["name", "detail"]]));
    for batch in [
        json!({ "results": [["cmd_4", 201, receipt, null]] }),
        json!({ "results": [good], "next": page_list() }),
        json!({ "results": [{ "commandId": "cmd_4", "status": 201, "receipt": receipt_list() }] }),
        json!({ "results": [{ "commandId": "cmd_4", "status": 400, "problem": problem }] }),
    ] {
        assert_refused(answer(&batch).results(&sent, Some(&next())), &batch.to_string());
    }
    assert!(serde_json::from_value::<Problem>(problem_with(json!([]))).is_ok());
    assert!(serde_json::from_value::<Problem>(problem).is_err());
}
