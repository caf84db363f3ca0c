//! Opening a session.

use super::*;
use site_client::{BadAnswer, CallError, Opened, Refusal};
use site_protocol::SessionRequest;

fn request() -> SessionRequest {
    SessionRequest { session_id: "a-session-of-this-test".to_owned(), expected_generation: 2 }
}

/// The session that [`request`] opens.
fn session() -> String {
    format!(
        r#"{{"sessionId":"a-session-of-this-test","generation":3,"doneSeq":4,"doneDigest":"{}","lastSeq":5,"serverTime":"2024-05-06T07:08:10Z","laterField":1}}"#,
        "07".repeat(32)
    )
}

#[tokio::test]
async fn a_session_is_opened_as_documented_and_makes_the_writer() {
    for (status, expected) in [(201, Opened::New), (200, Opened::Same)] {
        let (peer, site) = one_answer(Reply::json(status, session())).await;
        let (session, opened) = site.client.open_session(&request()).await.unwrap();
        assert_eq!((session.done_seq, session.last_seq, opened), (4, 5, expected));
        assert_eq!(Writer::of(&session), writer());
        let request = &peer.received()[0];
        assert_eq!(request.method, "POST");
        assert_eq!(request.target, "/v1/site/commands/sessions");
        assert_eq!(request.headers["content-type"], "application/json");
        assert_eq!(
            request.body,
            br#"{"sessionId":"a-session-of-this-test","expectedGeneration":2}"#
        );
        assert_eq!(request.headers.get("runtime-generation"), None);
    }
}

#[tokio::test]
async fn an_answer_for_another_session_or_an_impossible_place_is_refused() {
    for (from, to) in [
        ("a-session-of-this-test", "another-session-of-it"),
        ("\"generation\":3", "\"generation\":1"),
        ("\"doneSeq\":4", "\"doneSeq\":6"),
        ("\"doneSeq\":4", "\"doneSeq\":0"),
    ] {
        assert!(session().contains(from), "{from}");
        let (_peer, site) = one_answer(Reply::json(201, session().replace(from, to))).await;
        let error = site.client.open_session(&request()).await.unwrap_err();
        assert!(matches!(error, CallError::BadAnswer(BadAnswer::OtherSession)), "{to}: {error:?}");
    }
}

#[tokio::test]
async fn a_lost_comparison_tells_the_current_generation() {
    let Reply::Whole { body, .. } = Reply::problem(409, "stale_generation", false) else {
        unreachable!()
    };
    let text = String::from_utf8(body).unwrap();
    let text = text.replace("\"source\"", "\"generation\":7,\"source\"");
    let (_peer, site) = one_answer(Reply::new(409, "application/problem+json", text)).await;
    let error = site.client.open_session(&request()).await.unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::StaleGeneration { generation: Some(7) }));
}
