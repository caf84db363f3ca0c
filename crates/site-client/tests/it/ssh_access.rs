//! The calls of an SSH agent.

use super::*;
use serde_json::{Value, json};
use site_client::{BadAnswer, CallError, FeedError, SshCursor, ssh_change_digest};
use site_protocol::{SshAcknowledgement, SshAttested, SshChange, SshFailure};

const LEASE: [&str; 2] = ["2026-01-02T03:04:05Z", "2026-01-02T03:13:05Z"];

/// A feed of one change: the place before it, the place after it, and the change.
fn feed() -> (SshCursor, SshCursor, SshChange) {
    let before = format!("4.{}", "07".repeat(32)).parse::<SshCursor>().unwrap();
    let change = json!({"seq": 5, "op": "add", "unixUser": "alice", "keyId": "key_1",
        "memberId": "member-1", "publicKey": "ssh-ed25519 AAAA", "digest": Digest::ZERO});
    let mut change: SshChange = serde_json::from_value(change).unwrap();
    change.digest = ssh_change_digest(&change);
    (before, before.after(&change.digest).unwrap(), change)
}

fn page() -> Value {
    let (_, after, change) = feed();
    json!({"changes": [change], "next": after.to_string(), "head": after.to_string(),
        "serverTime": LEASE[0], "leaseUntil": LEASE[1], "later": 1})
}

fn lines(keys: &[&str]) -> String {
    let head =
        json!({"cursor": feed().1.to_string(), "serverTime": LEASE[0], "leaseUntil": LEASE[1]});
    let keys = keys.iter().map(|id| {
        json!({"unixUser": "alice", "keyId": id, "memberId": "m", "publicKey": "ssh-ed25519 AAAA"})
    });
    let end = json!({"complete": true, "count": keys.len()});
    let lines = std::iter::once(head).chain(keys).chain([end]);
    lines.map(|line| format!("{line}\n")).collect()
}

fn snapshot(body: impl Into<Vec<u8>>) -> Reply {
    Reply::new(200, "application/x-ndjson", body)
}

#[tokio::test]
async fn changes_are_asked_for_after_the_place_and_checked() {
    let (peer, site) = one_answer(Reply::json(200, page().to_string())).await;
    let (before, after, _) = feed();
    let read = site.client.ssh_changes(before, 7, Duration::from_secs(3)).await.unwrap();
    assert_eq!((read.changes.len(), read.next, read.head), (1, after, after));
    assert_eq!(read.lease.until.to_string(), "2026-01-02 03:13:05 UTC");
    let received = peer.received().remove(0);
    let target = format!("/v1/site/ssh-access/changes?limit=7&wait=3&after={before}");
    assert_eq!((received.method.as_str(), received.target), ("GET", target));
    assert_eq!(received.headers["authorization"], format!("Bearer {TOKEN}"));
    // From the very beginning there is no place to name.
    let start = site.client.ssh_changes(SshCursor::START, 7, Duration::ZERO).await.unwrap_err();
    assert!(matches!(start, CallError::Feed(FeedError::Gap { .. })), "{start:?}");
    assert_eq!(peer.received()[1].target, "/v1/site/ssh-access/changes?limit=7&wait=0");
}

#[tokio::test]
async fn changes_that_do_not_continue_the_feed_are_refused() {
    let (before, _, _) = feed();
    let mut forked = page();
    forked["changes"][0]["unixUser"] = "mallory".into();
    let (_peer, site) = one_answer(Reply::json(200, forked.to_string())).await;
    let error = site.client.ssh_changes(before, 7, Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, CallError::Feed(FeedError::ChangeDigest { seq: 5 })), "{error:?}");
    assert!(!error.retryable());
    let (_peer, site) = one_answer(Reply::json(200, page().to_string())).await;
    let error = site.client.ssh_changes(before, 0, Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, CallError::BadAnswer(BadAnswer::TooManyChanges)), "{error:?}");
    let long = page().to_string().replace(LEASE[1], "2039-01-01T00:00:00Z");
    let (_peer, site) = one_answer(Reply::json(200, long)).await;
    let error = site.client.ssh_changes(before, 7, Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, CallError::BadAnswer(BadAnswer::Lease)), "{error:?}");
}

#[tokio::test]
async fn changes_come_also_under_a_lease_that_is_over() {
    let over = page().to_string().replace(LEASE[1], LEASE[0]);
    let (_peer, site) = one_answer(Reply::json(200, over)).await;
    let page = site.client.ssh_changes(feed().0, 7, Duration::ZERO).await.unwrap();
    assert_eq!((page.changes.len(), page.lease.is_over()), (1, true));
}

#[tokio::test]
async fn a_snapshot_is_read_key_by_key_to_its_end() {
    let (peer, site) = one_answer(snapshot(lines(&["a", "b"]))).await;
    let mut read = site.client.ssh_snapshot().await.unwrap();
    assert_eq!(read.cursor(), feed().1);
    let mut ids = Vec::new();
    while let Some(key) = read.next().await.unwrap() {
        ids.push(key.key_id);
    }
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(peer.received()[0].target, "/v1/site/ssh-access/snapshot");
}

#[tokio::test]
async fn a_snapshot_that_is_cut_at_any_place_is_none() {
    let body = lines(&["a"]);
    let whole = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for length in (0..whole.len()).step_by(7) {
        let (_peer, site) = one_answer(Reply::Cut(whole.as_bytes()[..length].to_vec())).await;
        let error = match site.client.ssh_snapshot().await {
            Err(error) => error,
            Ok(mut read) => loop {
                match read.next().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("cut at {length} and taken as whole"),
                    Err(error) => break error,
                }
            },
        };
        assert!(matches!(error, CallError::Transport(_)), "{length}: {error:?}");
    }
    // A body that ends in order where a gateway has cut it.
    let (without_end, _) = body.split_once("{\"complete\"").unwrap();
    let (_peer, site) = one_answer(snapshot(without_end)).await;
    let mut read = site.client.ssh_snapshot().await.unwrap();
    read.next().await.unwrap();
    let error = read.next().await.unwrap_err();
    assert!(
        matches!(error, CallError::BadAnswer(BadAnswer::IncompleteSnapshot { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_snapshot_that_is_refused_or_a_gateways_page_is_told_as_such() {
    let (_peer, site) = one_answer(Reply::problem(503, "database_unavailable", true)).await;
    let error = site.client.ssh_snapshot().await.unwrap_err();
    assert_eq!(error.code(), Some("database_unavailable"));
    let (_peer, site) = one_answer(Reply::html(200)).await;
    let error = site.client.ssh_snapshot().await.unwrap_err();
    assert!(matches!(error, CallError::BadAnswer(_)), "{error:?}");
    let (_peer, site) = one_answer(Reply::html(502)).await;
    let error = site.client.ssh_snapshot().await.unwrap_err();
    assert!(matches!(error, CallError::NotOurs { status: 502, .. }), "{error:?}");
    let (_peer, site) = one_answer(Reply::json(201, "{}")).await;
    let error = site.client.ssh_snapshot().await.unwrap_err();
    assert!(matches!(error, CallError::BadAnswer(BadAnswer::Snapshot { line: 0 })), "{error:?}");
}

#[tokio::test]
async fn a_snapshot_that_drips_is_given_up() {
    let body = lines(&["a"]);
    let whole = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let ca = TestCa::new();
    let pause = Duration::from_millis(20);
    let peer = Peer::start(&ca, move |_| Reply::Drip(whole.clone().into_bytes(), pause)).await;
    // The head of the answer and its first line have more bytes than come in this time.
    let timeouts = Timeouts { answer: Duration::from_millis(500), ..Timeouts::default() };
    let site = super::client(&ca, peer.origin(), timeouts).await;
    let error = match site.client.ssh_snapshot().await {
        Err(error) => error,
        Ok(mut read) => read.next().await.unwrap_err(),
    };
    assert!(matches!(error, CallError::Transport(_)), "{error:?}");
}

#[tokio::test]
async fn an_acknowledgement_says_what_is_durable_and_its_answer_fits() {
    let (before, after, _) = feed();
    let answer = |cursor: SshCursor, head: SshCursor| {
        json!({"cursor": cursor.to_string(), "head": head.to_string(), "attested": "match",
            "serverTime": LEASE[0]})
    };
    let (peer, site) = one_answer(Reply::json(200, answer(before, after).to_string())).await;
    let failure = SshFailure {
        unix_user: "alice".to_owned(),
        key_id: "key_1".to_owned(),
        reason: "unmanaged_file".to_owned(),
    };
    let acknowledgement = SshAcknowledgement {
        cursor: before.to_string(),
        chain_digest: before.chain_digest(),
        set_digest: Some(Digest::ZERO),
        failures: vec![failure],
    };
    let stored = site.client.ssh_acknowledge(before, &acknowledgement).await.unwrap();
    assert_eq!((stored.cursor, stored.head), (before, after));
    assert_eq!(stored.attested, Some(SshAttested::Match));
    let received = peer.received().remove(0);
    assert_eq!(received.method, "PUT");
    assert_eq!(received.target, "/v1/site/ssh-access/acknowledgement");
    let sent: SshAcknowledgement = serde_json::from_slice(&received.body).unwrap();
    assert_eq!(sent, acknowledgement);
    // An older place than the acknowledged one, another history, or a head before the place.
    let fork: SshCursor = format!("5.{}", "08".repeat(32)).parse().unwrap();
    for (cursor, stored, head) in
        [(after, before, after), (after, fork, fork), (after, after, before), (after, after, fork)]
    {
        let (_peer, site) = one_answer(Reply::json(200, answer(stored, head).to_string())).await;
        let error = site.client.ssh_acknowledge(cursor, &acknowledgement).await.unwrap_err();
        let other = matches!(error, CallError::BadAnswer(BadAnswer::OtherAcknowledgement));
        assert!(other, "{cursor} {stored} {head}: {error:?}");
    }
}
