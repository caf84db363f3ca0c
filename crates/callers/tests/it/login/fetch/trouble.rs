//! Each answer that is none: our trouble, never the caller's.

use std::error::Error;

use callers::login::{DiscoveryError, Document, KeysError};
use https_client::SendError;

use super::*;

/// What a first token comes to, where the issuer answers the one question or the other with this.
async fn came_of(discovery: Option<Reply>, keys: Option<Reply>) -> LoginTrouble {
    came_within(Duration::from_secs(20), discovery, keys).await
}

async fn came_within(
    within: Duration,
    discovery: Option<Reply>,
    keys: Option<Reply>,
) -> LoginTrouble {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    {
        let mut answers = world.answers.lock().unwrap();
        (answers.discovery, answers.set) = (discovery, keys);
    }
    let verifier = world.verifier_with(|settings| settings.times.within = within);
    let came = trouble(verifier.verify(&world.token(&key)).await);
    let told = verifier.trouble().borrow().as_ref().map(ToString::to_string);
    assert_eq!(told, Some(came.to_string()));
    came
}

fn large() -> Reply {
    let body = format!("{{\"keys\":[],\"x\":\"{}\"}}", "x".repeat(300 * 1024));
    Reply::json(200, body)
}

#[tokio::test]
async fn what_is_no_answer_is_told_by_its_document() {
    let drip = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{".to_vec();
    for (reply, is_late) in [
        (Reply::Cut(Vec::new()), false),
        (Reply::Cut(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}".to_vec()), false),
        (large(), false),
        (Reply::Silence, true),
        (Reply::Drip(drip, Duration::from_millis(20)), true),
    ] {
        for of in [Document::Discovery, Document::Keys] {
            let within = Duration::from_secs(if is_late { 2 } else { 20 });
            let reply = Some(reply.clone());
            let came = match of {
                Document::Discovery => came_within(within, reply, None).await,
                Document::Keys => came_within(within, None, reply).await,
            };
            let good = match &came {
                LoginTrouble::TooLate { document } => is_late && *document == of,
                LoginTrouble::Unanswered { document, .. } => !is_late && *document == of,
                _ => false,
            };
            assert!(good, "{of}: {came:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_of_more_than_256_kib_is_not_read() {
    let came = came_of(None, Some(large())).await;
    let source = came.source().and_then(|source| source.downcast_ref::<Arc<SendError>>());
    let source = source.map(AsRef::as_ref);
    assert!(matches!(source, Some(SendError::TooLarge { most_bytes: 262_144, .. })), "{came:?}");
}

#[tokio::test]
async fn each_status_but_200_is_told() {
    for status in [201, 204, 301, 401, 404, 429, 500] {
        let page = Some(Reply::html(status));
        for came in [came_of(page.clone(), None).await, came_of(None, page).await] {
            let LoginTrouble::Status { status: told, .. } = came else { panic!("{came:?}") };
            assert_eq!(told.as_u16(), status);
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Peer::start(&TestCa::new(), |_| Reply::json(200, "{}")).await;
    let to = Reply::Whole {
        status: 302,
        content_type: "text/html",
        extra_head: format!("location: {}{KEYS}\r\n", target.origin()),
        body: Vec::new(),
    };
    for came in [came_of(Some(to.clone()), None).await, came_of(None, Some(to)).await] {
        assert!(matches!(came, LoginTrouble::Status { .. }), "{came:?}");
    }
    assert!(target.received().is_empty());
}

#[tokio::test]
async fn a_document_of_somebody_else_is_not_followed() {
    let other = Peer::start(&TestCa::new(), |_| Reply::json(200, "{}")).await;
    let elsewhere = |origin: &str| json!({ "issuer": origin, "jwks_uri": other.origin() });
    for (body, expected) in [
        ("<html>".to_owned(), DiscoveryError::NotADocument),
        ("{}".to_owned(), DiscoveryError::NotADocument),
        (elsewhere(other.origin()).to_string(), DiscoveryError::OtherIssuer),
    ] {
        let came = came_of(Some(Reply::json(200, body)), None).await;
        let LoginTrouble::Discovery(told) = came else { panic!("{came:?}") };
        assert_eq!(told, expected);
    }
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    world.answer(Some(Reply::json(200, elsewhere(world.peer.origin()).to_string())));
    let came = trouble(world.verify(&world.token(&key)).await);
    assert!(matches!(came, LoginTrouble::Discovery(DiscoveryError::KeysElsewhere)), "{came:?}");
    assert!(other.received().is_empty());
}

#[tokio::test]
async fn keys_that_are_none_are_told() {
    for (body, expected) in [
        ("<html>".to_owned(), KeysError::NotASet),
        (r#"{"keys":[]}"#.to_owned(), KeysError::NoneUsable),
        (json!({ "keys": vec![json!({}); 65] }).to_string(), KeysError::TooMany),
    ] {
        let came = came_of(None, Some(Reply::json(200, body))).await;
        let LoginTrouble::Keys(told) = came else { panic!("{came:?}") };
        assert_eq!(told, expected);
    }
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_the_issuer() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("ca.pem");
    TestCa::new().write_to(&other).unwrap();
    let verifier = world.verifier_with(|settings| settings.ca_file = other);
    let came = trouble(verifier.verify(&world.token(&key)).await);
    let LoginTrouble::Unanswered { document: Document::Discovery, source } = &came else {
        panic!("{came:?}")
    };
    assert!(matches!(source.as_ref(), SendError::Untrusted(_)), "{came:?}");
    assert!(world.asked().is_empty());
}

/// A half-read answer must not replace keys that are good.
#[tokio::test]
async fn keys_that_can_not_be_read_replace_nothing_and_a_set_of_none_withdraws_all() {
    let (old, new) = (SigningKey::new("old", "ES256"), SigningKey::new("new", "ES256"));
    let world = World::with(&[&old]).await;
    world.verify(&world.token(&old)).await.unwrap();
    world.answers.lock().unwrap().set = Some(Reply::json(200, r#"{"keys":["#));
    pass(Duration::from_secs(30)).await;
    trouble(world.verify(&world.token(&new)).await);
    world.verify(&world.token(&old)).await.unwrap();
    world.answers.lock().unwrap().set = Some(Reply::json(200, r#"{"keys":[]}"#));
    pass(Duration::from_secs(3)).await;
    trouble(world.verify(&world.token(&new)).await);
    trouble(world.verify(&world.token(&old)).await);
}
