//! Results in batches.

use super::*;
use site_client::{BadAnswer, CallError, Refusal, Stored};

/// Results of `cmd_3` and `cmd_4`.
fn batch() -> [ResultToStore<'static>; 2] {
    let before = ResultToStore {
        command_id: "cmd_3",
        seq: 3,
        chain_digest: Digest::ZERO,
        ..result(b"[1, 2]")
    };
    [before, result(b"{ }")]
}

fn good(status: u16, command_id: &str, result: &[u8]) -> String {
    let receipt = receipt(command_id, result);
    format!(r#"{{"commandId":"{command_id}","status":{status},"receipt":{receipt}}}"#)
}

fn refused(command_id: &str, code: &str) -> String {
    let Reply::Whole { body, .. } = Reply::problem(409, code, false) else { unreachable!() };
    let problem = String::from_utf8(body).unwrap();
    format!(r#"{{"commandId":"{command_id}","status":409,"problem":{problem}}}"#)
}

fn answer(first: &str, second: &str, next: &str) -> Reply {
    Reply::json(200, format!(r#"{{"results":[{first},{second}]{next}}}"#))
}

fn next_page() -> String {
    format!(",\"next\":{}", page())
}

#[tokio::test]
async fn each_results_text_is_sent_as_it_is_and_each_has_its_receipt() {
    let both = (good(200, "cmd_3", b"[1, 2]"), good(201, "cmd_4", b"{ }"));
    let (peer, site) = one_answer(answer(&both.0, &both.1, &next_page())).await;
    let stored = site.client.store_results(&writer(), &batch(), Some(&next())).await.unwrap();
    let [Ok((first, Stored::Same)), Ok((second, Stored::New))] = &stored.results[..] else {
        panic!("{stored:?}")
    };
    assert_eq!((first.seq, second.seq), (3, 4));
    assert_eq!(stored.next.unwrap().commands[0].seq, 5);
    let request = &peer.received()[0];
    assert_eq!(request.target, "/v1/site/commands/results?next=2&wait=3");
    assert_eq!(
        String::from_utf8_lossy(&request.body),
        r#"{"results":[{"commandId":"cmd_3","result":[1, 2]},{"commandId":"cmd_4","result":{ }}]}"#
    );
    assert_eq!(request.headers["runtime-session"], "a-session-of-this-test");
}

#[tokio::test]
async fn a_result_that_is_refused_keeps_its_own_reason() {
    let both = (good(201, "cmd_3", b"[1, 2]"), refused("cmd_4", "result_conflict"));
    let (_peer, site) = one_answer(answer(&both.0, &both.1, "")).await;
    let stored = site.client.store_results(&writer(), &batch(), None).await.unwrap();
    let [Ok(_), Err(error)] = &stored.results[..] else { panic!("{stored:?}") };
    assert_eq!(error.refusal(), Some(Refusal::ResultConflict { stored: None }));
}

#[tokio::test]
async fn a_page_after_a_voided_command_goes_on_after_it() {
    let both = (good(201, "cmd_3", b"[1, 2]"), refused("cmd_4", "already_voided"));
    let (_peer, site) = one_answer(answer(&both.0, &both.1, &next_page())).await;
    let stored = site.client.store_results(&writer(), &batch(), Some(&next())).await.unwrap();
    assert_eq!(stored.next.unwrap().next_after, 5);
}

#[tokio::test]
async fn answers_that_do_not_belong_to_what_was_sent_are_refused() {
    let (first, second) = (good(201, "cmd_3", b"[1, 2]"), good(201, "cmd_4", b"{ }"));
    let problem = refused("cmd_4", "result_conflict");
    for reply in [
        answer(&second, &first, &next_page()),
        answer(&first, &first, &next_page()),
        answer(&first, &good(201, "cmd_4", b"{}"), &next_page()),
        answer(&first, &good(409, "cmd_4", b"{ }"), &next_page()),
        answer(&first, r#"{"commandId":"cmd_4","status":201}"#, &next_page()),
        answer(
            &first,
            &problem.replace("\"status\":409,\"problem\"", "\"status\":200,\"problem\""),
            "",
        ),
        Reply::json(200, format!(r#"{{"results":[{first}]{}}}"#, next_page())),
        // A page where none can be.
        answer(&refused("cmd_3", "stale_generation"), &problem, &next_page()),
        // It goes on after the last of the leading ones.
        answer(&first, &problem, &next_page()),
    ] {
        let (_peer, site) = one_answer(reply.clone()).await;
        let stored = site.client.store_results(&writer(), &batch(), Some(&next())).await;
        let error = stored.expect_err(&format!("{reply:?}"));
        assert!(
            matches!(error, CallError::BadAnswer(BadAnswer::OtherReceipt) | CallError::Chain(_)),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn no_page_where_one_was_asked_for_takes_no_receipt_back() {
    let both = (good(200, "cmd_3", b"[1, 2]"), good(200, "cmd_4", b"{ }"));
    let (_peer, site) = one_answer(answer(&both.0, &both.1, "")).await;
    let stored = site.client.store_results(&writer(), &batch(), Some(&next())).await.unwrap();
    assert!(stored.next.is_none() && stored.results.iter().all(Result::is_ok), "{stored:?}");
}
