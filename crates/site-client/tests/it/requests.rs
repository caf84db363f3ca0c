//! What is sent, and what a good answer gives.

use super::*;
use site_client::Stored;

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
async fn a_result_is_sent_as_it_is_and_201_and_200_are_told_apart() {
    for (status, expected) in [(201, Stored::New), (200, Stored::Same)] {
        let result = br#"{"outcome":"succeeded", "output":[ ]}"#;
        let (peer, site) = one_answer(Reply::json(status, receipt("cmd_5", result))).await;
        let (receipt, stored) =
            site.client.store_result(1, "cmd_5", result[..].into()).await.unwrap();
        assert_eq!((receipt.seq, stored), (5, expected));
        let request = &peer.received()[0];
        assert_eq!((request.method.as_str(), &request.body[..]), ("PUT", &result[..]));
        assert_eq!(request.target, "/v1/site/commands/cmd_5/result");
        assert_eq!(request.headers["content-type"], "application/json");
        assert_eq!(request.headers["runtime-generation"], "1");
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
