//! What is sent, and what a good answer gives.

use super::*;
use site_client::{BadAnswer, CallError, Stored, output_digest};

#[tokio::test]
async fn a_poll_asks_as_documented_and_gives_the_page() {
    let (peer, site) = one_answer(Reply::json(200, page())).await;
    let page = site.client.poll(&question()).await.unwrap();
    assert_eq!(page.commands[0].body.get(), r#"{"b": 1.0, "a":[]}"#);
    let received = peer.received();
    let [request] = &received[..] else { panic!("{received:?}") };
    assert_eq!(request.method, "GET");
    assert_eq!(
        request.target,
        format!("/v1/site/commands/?after=4&limit=2&wait=3&afterDigest={}", "07".repeat(32))
    );
    assert_eq!(request.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(request.headers["runtime-generation"], "1");
    assert_eq!(request.headers.get("content-type"), None);
}

#[tokio::test]
async fn an_unknown_digest_is_not_sent() {
    let (peer, site) = one_answer(Reply::json(200, page())).await;
    site.client.poll(&PollRequest { after_digest: None, ..question() }).await.unwrap();
    assert_eq!(peer.received()[0].target, "/v1/site/commands/?after=4&limit=2&wait=3");
}

#[tokio::test]
async fn a_writer_with_a_session_names_it_and_what_it_has_seen_of_cancels() {
    let (peer, site) = one_answer(Reply::json(200, page())).await;
    site.client.poll(&PollRequest { writer: writer(), cancel_rev: 6, ..question() }).await.unwrap();
    let request = &peer.received()[0];
    assert_eq!(request.headers["runtime-generation"], "3");
    assert_eq!(request.headers["runtime-session"], "a-session-of-this-test");
    assert!(request.target.contains("&cancelRev=6&"), "{}", request.target);
}

#[tokio::test]
async fn a_result_is_sent_as_it_is_and_201_and_200_are_told_apart() {
    for (status, expected) in [(201, Stored::New), (200, Stored::Same)] {
        let bytes = br#"{"outcome":"succeeded", "output":[ ]}"#;
        let (peer, site) = one_answer(Reply::json(status, receipt("cmd_4", bytes))).await;
        let stored = site.client.store_result(&Writer::FIRST, &result(bytes), None).await.unwrap();
        assert_eq!((stored.receipt.seq, stored.stored), (4, expected));
        assert!(stored.next.is_none());
        let request = &peer.received()[0];
        assert_eq!((request.method.as_str(), &request.body[..]), ("PUT", &bytes[..]));
        assert_eq!(request.target, "/v1/site/commands/cmd_4/result");
        assert_eq!(request.headers["content-type"], "application/json");
        assert_eq!(request.headers["runtime-generation"], "1");
        assert_eq!(request.headers.get("runtime-session"), None);
    }
}

#[tokio::test]
async fn a_result_brings_the_next_commands_along() {
    let answer = format!(r#"{{"receipt":{},"next":{}}}"#, receipt("cmd_4", b"{}"), page());
    let (peer, site) = one_answer(Reply::json(201, answer)).await;
    let next = Next { cancel_rev: 9, ..next() };
    let stored = site.client.store_result(&writer(), &result(b"{}"), Some(&next)).await.unwrap();
    assert_eq!(stored.next.unwrap().commands[0].command_id, "cmd_5");
    let request = &peer.received()[0];
    assert_eq!(request.target, "/v1/site/commands/cmd_4/result?next=2&wait=3&cancelRev=9");
    assert_eq!(request.headers["runtime-session"], "a-session-of-this-test");
}

#[tokio::test]
async fn an_output_is_sent_as_it_is_under_its_digest() {
    let bytes = b"\0private";
    let digest = output_digest(bytes);
    let receipt = format!(
        r#"{{"commandId":"cmd_4","digest":"{digest}","bytes":8,"storedAt":"2024-05-06T07:08:10Z"}}"#
    );
    let (peer, site) = one_answer(Reply::json(201, receipt.clone())).await;
    let (_, stored) =
        site.client.store_output(&writer(), "cmd_4", bytes.to_vec().into()).await.unwrap();
    assert_eq!(stored, Stored::New);
    let request = &peer.received()[0];
    assert_eq!((request.method.as_str(), &request.body[..]), ("PUT", &bytes[..]));
    assert_eq!(request.target, format!("/v1/site/commands/cmd_4/outputs/{digest}"));
    assert_eq!(request.headers["content-type"], "application/octet-stream");
    for (from, to) in [("cmd_4", "cmd_5"), (&digest.to_string(), &"0".repeat(64)), ("8,", "9,")] {
        assert!(receipt.contains(from), "{from}");
        let (_peer, site) = one_answer(Reply::json(201, receipt.replace(from, to))).await;
        let stored = site.client.store_output(&writer(), "cmd_4", bytes.to_vec().into()).await;
        let error = stored.unwrap_err();
        assert!(matches!(error, CallError::BadAnswer(BadAnswer::OtherReceipt)), "{error:?}");
    }
}

#[tokio::test]
async fn the_next_call_uses_a_rotated_token() {
    let (peer, site) = one_answer(Reply::json(200, page())).await;
    site.client.poll(&question()).await.unwrap();
    std::fs::write(&site.token_path, "rotated").unwrap();
    site.client.poll(&question()).await.unwrap();
    assert_eq!(peer.received()[1].headers["authorization"], "Bearer rotated");
}
