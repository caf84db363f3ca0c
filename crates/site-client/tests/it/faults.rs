//! What a bad answer, or none, becomes.

use super::*;
use site_client::{BadAnswer, CallError, ChainError};

async fn poll_error(reply: Reply) -> CallError {
    let (_peer, site) = one_answer(reply).await;
    site.client.poll(&question()).await.unwrap_err()
}

#[tokio::test]
async fn a_problem_is_told_with_its_code_and_its_advice() {
    let Reply::Whole { status, content_type, extra_head, body } =
        Reply::problem(503, "overloaded", true)
    else {
        unreachable!()
    };
    let text = String::from_utf8(body).unwrap();
    let body = text.replace("\"source\"", "\"retryAfterMs\":1500,\"source\"").into_bytes();
    let error = poll_error(Reply::Whole { status, content_type, extra_head, body }).await;
    assert_eq!(error.code(), Some("overloaded"));
    assert!(error.retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1500)));
    let error = poll_error(Reply::problem(409, "history_diverged", false)).await;
    assert_eq!((error.code(), error.retryable()), (Some("history_diverged"), false));
}

#[tokio::test]
async fn a_gateways_page_is_not_taken_for_the_site_apis_word() {
    for (status, retryable) in [(503, true), (502, true), (429, true), (404, false), (302, false)] {
        let error = poll_error(Reply::html(status)).await;
        assert!(matches!(error, CallError::NotOurs { status: found, .. } if found == status));
        assert_eq!((error.retryable(), error.code()), (retryable, None), "{status}");
    }
    let Reply::Whole { status, content_type, body, .. } = Reply::html(503) else { unreachable!() };
    let extra_head = "retry-after: 7\r\n".to_owned();
    let error = poll_error(Reply::Whole { status, content_type, extra_head, body }).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_problem_of_somebody_else_is_not_ours() {
    let Reply::Whole { body, .. } = Reply::problem(409, "history_diverged", false) else {
        unreachable!()
    };
    let text = String::from_utf8(body).unwrap();
    let problem = "application/problem+json";
    for (status, content_type, body) in [
        (409, problem, text.replace("site-api", "edge")),
        (409, problem, text.replace(",\"source\":\"site-api\"", "")),
        (409, problem, "<html>".to_owned()),
        (409, "application/json", text.clone()),
        (404, problem, text.clone()),
    ] {
        let error = poll_error(Reply::new(status, content_type, body.clone())).await;
        assert!(matches!(error, CallError::NotOurs { .. }), "{status} {content_type} {body}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = answers(|_| Reply::json(200, page())).await.0;
    let location = format!("location: {}/v1/site/commands/\r\n", target.origin());
    let error = poll_error(Reply::Whole {
        status: 307,
        content_type: "text/html",
        extra_head: location,
        body: Vec::new(),
    })
    .await;
    assert!(matches!(error, CallError::NotOurs { status: 307, .. }));
    assert!(target.received().is_empty());
}

#[tokio::test]
async fn an_answer_that_is_not_the_expected_json_is_not_quoted() {
    for body in ["<html>sensitive</html>", "{\"commands\":\"sensitive\"}", "[]", "", "{\"a\":"] {
        let error = poll_error(Reply::json(200, body)).await;
        assert!(matches!(error, CallError::BadAnswer(BadAnswer::Json { .. })), "{body:?}");
        assert!(!format!("{error:?} {error}").contains("sensitive"));
    }
}

#[tokio::test]
async fn an_answer_above_the_limit_is_not_read_to_its_end() {
    let error = poll_error(Reply::json(200, vec![b' '; 17 * 1024 * 1024])).await;
    assert!(matches!(error, CallError::BadAnswer(BadAnswer::TooLarge { .. })), "{error:?}");
    let error = poll_error(Reply::new(502, "text/html", vec![b' '; 17 * 1024 * 1024])).await;
    assert!(matches!(error, CallError::NotOurs { status: 502, .. }), "{error:?}");
}

#[tokio::test]
async fn a_page_that_does_not_continue_the_stream_is_refused() {
    let text = page();
    for (from, to) in [
        ("\"kind\":\"k\"", "\"kind\":\"other\""),
        ("\"nextAfter\":5", "\"nextAfter\":6"),
        ("\"lastSeq\":5", "\"lastSeq\":4"),
        ("\"b\": 1.0", "\"b\":1.0"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = poll_error(Reply::json(200, text.replace(from, to))).await;
        assert!(matches!(error, CallError::Chain(_)), "{from}: {error:?}");
    }
    let (_peer, site) = one_answer(Reply::json(200, text)).await;
    let other = PollRequest { after_digest: Some(Digest::from_bytes([8; 32])), ..question() };
    let error = site.client.poll(&other).await.unwrap_err();
    assert!(matches!(error, CallError::Chain(ChainError::ChainDigest { seq: 5 })), "{error:?}");
    let fewer = PollRequest { limit: 0, ..question() };
    let error = site.client.poll(&fewer).await.unwrap_err();
    assert!(matches!(error, CallError::BadAnswer(BadAnswer::TooManyCommands)), "{error:?}");
}

#[tokio::test]
async fn a_receipt_for_something_else_is_refused() {
    let other_place = receipt("cmd_4", b"{}").replace("\"seq\":4", "\"seq\":5");
    for receipt in [receipt("cmd_6", b"{}"), receipt("cmd_4", b"{ }"), other_place] {
        let (_peer, site) = one_answer(Reply::json(201, receipt)).await;
        let stored = site.client.store_result(&writer(), &result(b"{}"), None).await;
        let error = stored.unwrap_err();
        assert!(matches!(error, CallError::BadAnswer(BadAnswer::OtherReceipt)), "{error:?}");
    }
}

#[tokio::test]
async fn commands_that_do_not_follow_the_result_are_refused() {
    let first = receipt("cmd_4", b"{}");
    for (receipt, page) in [
        (&first, page().replace("\"kind\":\"k\"", "\"kind\":\"other\"")),
        (&first, page().replace("\"nextAfter\":5", "\"nextAfter\":6")),
        (&receipt("cmd_3", b"{}"), page()),
    ] {
        let answer = format!(r#"{{"receipt":{receipt},"next":{page}}}"#);
        let (_peer, site) = one_answer(Reply::json(201, answer)).await;
        let stored = site.client.store_result(&writer(), &result(b"{}"), Some(&next())).await;
        let error = stored.unwrap_err();
        assert!(matches!(error, CallError::Chain(_) | CallError::BadAnswer(_)), "{error:?}");
    }
    let answer = format!(r#"{{"receipt":{first},"next":{}}}"#, page());
    let (_peer, site) = one_answer(Reply::json(201, answer)).await;
    let other = ResultToStore { chain_digest: Digest::ZERO, ..result(b"{}") };
    let error = site.client.store_result(&writer(), &other, Some(&next())).await.unwrap_err();
    assert!(matches!(error, CallError::Chain(ChainError::ChainDigest { seq: 5 })), "{error:?}");
}

#[tokio::test]
async fn a_cut_at_any_place_is_a_transport_error() {
    let whole = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", page().len(), page());
    for length in [0, 5, 20, whole.len() / 2, whole.len() - 1] {
        let error = poll_error(Reply::Cut(whole.as_bytes()[..length].to_vec())).await;
        assert!(matches!(error, CallError::Transport(_)), "{length}: {error:?}");
        assert!(error.retryable());
    }
}

#[tokio::test]
async fn silence_ends_when_the_time_is_over() {
    let ca = TestCa::new();
    let peer = Peer::start(&ca, |_| Reply::Silence).await;
    let timeouts = Timeouts { answer: Duration::from_millis(50), ..Timeouts::default() };
    let site = client(&ca, peer.origin(), timeouts).await;
    let now = PollRequest { wait: Duration::ZERO, ..question() };
    let error = site.client.poll(&now).await.unwrap_err();
    assert!(matches!(error, CallError::Transport(_)), "{error:?}");
    let error = site.client.store_result(&writer(), &result(b"{}"), None).await.unwrap_err();
    assert!(matches!(error, CallError::Transport(_)), "{error:?}");
}

#[tokio::test]
async fn a_server_that_never_shakes_hands_is_given_up() {
    let deaf = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = deaf.local_addr().unwrap().port();
    let origin = format!("https://127.0.0.1:{port}");
    let timeouts =
        Timeouts { connect: Duration::from_millis(50), answer: Duration::from_secs(600) };
    let site = client(&TestCa::new(), &origin, timeouts).await;
    let question = question();
    let call = tokio::time::timeout(Duration::from_secs(60), site.client.poll(&question));
    let error = call.await.expect("the connection's time limit should end it").unwrap_err();
    assert!(matches!(error, CallError::Transport(_)), "{error:?}");
}

#[tokio::test]
async fn a_server_with_another_authority_never_sees_the_token() {
    let peer = Peer::start(&TestCa::new(), |_| Reply::json(200, page())).await;
    let site = client(&TestCa::new(), peer.origin(), Timeouts::default()).await;
    let error = site.client.poll(&question()).await.unwrap_err();
    assert!(matches!(error, CallError::Untrusted(_)), "{error:?}");
    assert!(error.retryable(), "it may have another certificate later");
    assert!(peer.received().is_empty());
    assert!(!format!("{error:?} {:?}", site.client).contains("the-secret"));
}
