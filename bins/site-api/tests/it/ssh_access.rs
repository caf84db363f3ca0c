//! SSH access: the feed as it is served, and the real agent of a Site that brings it into files.

mod agent;
mod outage;
mod snapshots;

use std::process::Command;

use database::{Pool, PoolLimits};
use ring::rand::SystemRandom;
use serde_json::{Value, json};
use site_protocol::paths;
use ssh_access::{
    KeyId, MemberId, NewKey, PROCESS_ROLE, Propagator, PropagatorLimits, PublicKey, REGISTRY_ROLE,
    Registry, SiteId, UnixUser, Window,
};
use test_support::eventually;

use crate::support::{Api, LONG, Place, Request, SITE};

/// The place before the first change.
fn start() -> String {
    format!("0.{}", "0".repeat(64))
}

/// A listener that serves SSH access, with its agent's bearer.
async fn served() -> (Api, String) {
    served_by(Place::prepare().await, |_| {}).await
}

/// The same with changed settings.
async fn served_by(place: Place, change: impl FnOnce(&mut Command)) -> (Api, String) {
    let bearer = place.issue(&["--scope", "ssh-access", "--site", SITE]);
    let mut command = place.command();
    place.ssh_access(&mut command);
    change(&mut command);
    (place.start_by(command).await, bearer)
}

#[expect(clippy::disallowed_methods, reason = "a test makes its own")]
fn random() -> SystemRandom {
    SystemRandom::new()
}

fn pool(place: &Place, role: &str) -> Pool {
    let url = place.database.url(role).parse().unwrap();
    Pool::new(&url, "test", PoolLimits::default())
}

/// The n-th key, `<type> <base64>`.
fn public_key(number: u8) -> PublicKey {
    // "ssh-ed25519" and 32 bytes, of which the last three make four characters.
    let last = ["AAAA", "AAAB", "AAAC", "AAAD", "AAAE", "AAAF"][usize::from(number)];
    let key = format!(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIIq0FswFZ8OL+YrfKI7fSR87uGqP9oBgWHWbOnv{last}"
    );
    PublicKey::parse(&key).unwrap()
}

/// A member's key and user, propagated.
async fn add(place: &Place, member: &str, user: &str, number: u8) -> KeyId {
    let registry = Registry::new(pool(place, REGISTRY_ROLE.name));
    let member = MemberId::parse(member).unwrap();
    let new = NewKey { member: member.clone(), key: public_key(number), end: None };
    let id = registry.add_key(&new, &random()).await.unwrap().value.id;
    let (site, user) = (SiteId::parse(SITE).unwrap(), UnixUser::parse(user).unwrap());
    registry.add_account(&site, &member, &user).await.unwrap();
    propagate(place).await;
    id
}

async fn remove(place: &Place, id: &KeyId) {
    Registry::new(pool(place, REGISTRY_ROLE.name)).remove_key(id, None).await.unwrap();
    propagate(place).await;
}

async fn propagate(place: &Place) {
    let window = Window::parse("60").unwrap();
    let (site, limits) = (SiteId::parse(SITE).unwrap(), PropagatorLimits::default());
    let pool = pool(place, PROCESS_ROLE.name);
    let propagator = Propagator::new(pool, site, window, limits, &random()).unwrap();
    let lease = propagator.acquire().await.unwrap().unwrap();
    propagator.propagate(lease).await.unwrap();
    propagator.release(lease).await.unwrap();
}

fn get(path: &str, bearer: &str) -> Request {
    Request::new("GET", path).bearer(bearer)
}

fn acknowledgement(bearer: &str, body: &Value) -> Request {
    Request::new("PUT", paths::SSH_ACKNOWLEDGEMENT)
        .bearer(bearer)
        .header("content-type", "application/json")
        .body(body.to_string().as_bytes())
}

/// A request that is in order, for each route.
fn cases(bearer: &str) -> [Request; 3] {
    let told = json!({"cursor": start(), "chainDigest": "0".repeat(64), "failures": []});
    [
        get(paths::SSH_CHANGES, bearer),
        get(paths::SSH_SNAPSHOT, bearer),
        acknowledgement(bearer, &told),
    ]
}

#[tokio::test]
async fn without_the_setting_there_is_nothing_at_the_paths() {
    let place = Place::prepare().await;
    let bearer = place.issue(&["--scope", "ssh-access", "--site", SITE]);
    let api = place.start().await;
    for request in cases(&bearer) {
        assert_eq!(api.send(&request).await.code(), "not_found");
    }
}

#[tokio::test]
async fn each_route_takes_the_agent_of_its_site_and_nobody_else() {
    let (api, bearer) = served().await;
    let commands = api.bearer();
    let south = api.place.issue(&["--scope", "ssh-access", "--site", "south-1"]);
    let garbage = "eyJhbGciOiJub25lIn0.e30.c2lnbmVk";
    // The grants that were issued just now are taken up.
    let known = async || {
        let answer = api.send(&get(paths::SSH_CHANGES, &south)).await;
        (answer.code() == "site_mismatch").then_some(())
    };
    eventually(LONG, "the other Site's bearer to be known", known).await;
    for (mine, theirs) in cases(&bearer).into_iter().zip(cases(&commands)) {
        assert_eq!(api.send(&mine).await.status, 200);
        assert_eq!(api.send(&theirs).await.code(), "forbidden");
    }
    for request in cases(&south) {
        assert_eq!(api.send(&request).await.code(), "site_mismatch");
    }
    for request in cases(garbage) {
        assert_eq!(api.send(&request).await.code(), "unauthenticated");
    }
    for request in cases(&bearer) {
        assert_eq!(
            api.send(&request.clone().without("authorization")).await.code(),
            "unauthenticated"
        );
        let unknown = api.send(&request.clone().query("nonsense=1")).await;
        assert_eq!(unknown.code(), "invalid_request");
        assert_eq!(unknown.problem().fields[0].field, "nonsense");
        assert_eq!(api.send(&request.method("DELETE")).await.code(), "method_not_allowed");
    }
    // And the commands are not for it.
    let poll = api.poll("").without("authorization").bearer(&bearer);
    assert_eq!(api.send(&poll).await.code(), "forbidden");
}

#[tokio::test]
async fn wrong_questions_and_bodies_are_named() {
    let (api, bearer) = served().await;
    for (query, field) in [
        ("after=7", "after"),
        ("after=0.ab", "after"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("wait=26", "wait"),
    ] {
        let answer = api.send(&get(paths::SSH_CHANGES, &bearer).query(query)).await;
        assert_eq!(answer.code(), "invalid_request", "{query}");
        assert_eq!(answer.problem().fields[0].field, field, "{query}");
    }
    let good = json!({"cursor": start(), "chainDigest": "0".repeat(64), "failures": []});
    let failure =
        json!({"unixUser": "alice", "keyId": "key_00000000000000000000000000", "reason": "r"});
    let spoilt = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    let in_failure = |name: &str, value: Value| {
        let mut failure = failure.clone();
        failure[name] = value;
        spoilt("failures", json!([failure]))
    };
    for (body, field) in [
        (json!({}), "chainDigest"),
        (spoilt("cursor", json!("7")), "cursor"),
        (spoilt("chainDigest", json!("x")), "chainDigest"),
        (spoilt("setDigest", json!("x")), "setDigest"),
        (spoilt("nonsense", json!(1)), "nonsense"),
        (spoilt("failures", json!({})), "failures"),
        (spoilt("failures", json!([1])), "failures[0]"),
        (spoilt("failures", json!([failure, failure])), "failures"),
        (spoilt("failures", json!(vec![failure.clone(); 1_001])), "failures"),
        (in_failure("unixUser", json!("root")), "failures[0].unixUser"),
        (in_failure("keyId", json!("key")), "failures[0].keyId"),
        (in_failure("reason", json!("")), "failures[0].reason"),
        (in_failure("reason", json!("x".repeat(201))), "failures[0].reason"),
        (in_failure("nonsense", json!(1)), "failures[0].nonsense"),
    ] {
        let answer = api.send(&acknowledgement(&bearer, &body)).await;
        assert_eq!(answer.code(), "invalid_request", "{field}");
        assert_eq!(answer.problem().fields[0].field, field, "{:?}", answer.problem());
    }
    let text = acknowledgement(&bearer, &good).without("content-type");
    assert_eq!(api.send(&text).await.code(), "unsupported_media_type");
    let broken = acknowledgement(&bearer, &good).body(b"{");
    assert_eq!(api.send(&broken).await.code(), "malformed_body");
}

#[tokio::test]
async fn changes_are_served_in_order_with_their_lease_and_acknowledged() {
    let (api, bearer) = served().await;
    let id = add(&api.place, "member-1", "alice", 0).await;
    let page = api.send(&get(paths::SSH_CHANGES, &bearer)).await.json();
    assert_eq!(page["changes"][0]["op"], "add");
    assert_eq!(page["changes"][0]["unixUser"], "alice");
    assert_eq!(page["changes"][0]["keyId"], id.as_str());
    assert_eq!(page["changes"][0]["publicKey"], public_key(0).to_string());
    assert_eq!(page["next"], page["head"]);
    let time = |name: &str| -> chrono::DateTime<chrono::Utc> {
        page[name].as_str().unwrap().parse().unwrap()
    };
    let lease = time("leaseUntil") - time("serverTime");
    assert_eq!(lease, chrono::TimeDelta::seconds(54));
    let cursor = page["next"].as_str().unwrap();
    remove(&api.place, &id).await;
    let after = format!("after={cursor}");
    let next = api.send(&get(paths::SSH_CHANGES, &bearer).query(&after)).await.json();
    assert_eq!(next["changes"][0]["op"], "remove");
    assert!(next["changes"][0]["enforceBy"].is_string());
    // A page ends where it is asked to, and the head is where the feed ends.
    let one = api.send(&get(paths::SSH_CHANGES, &bearer).query("limit=1")).await.json();
    assert_eq!(one["changes"].as_array().unwrap().len(), 1);
    assert_eq!((&one["next"], &one["head"]), (&json!(cursor), &next["head"]));
    let chain_digest = cursor.split_once('.').unwrap().1;
    let told = json!({"cursor": cursor, "chainDigest": chain_digest, "failures": []});
    let stored = api.send(&acknowledgement(&bearer, &told)).await.json();
    assert_eq!((&stored["cursor"], &stored["head"]), (&json!(cursor), &next["head"]));
    assert!(stored["attested"].is_null(), "nothing was to be compared");
    let mut with_set = told.clone();
    with_set["setDigest"] = json!("0".repeat(64));
    let stored = api.send(&acknowledgement(&bearer, &with_set)).await.json();
    assert_eq!(stored["attested"], "behind");
    // Places that are none of this feed.
    let fork = format!("1.{}", "ab".repeat(32));
    let ahead = format!("9.{}", "ab".repeat(32));
    for place in [fork, ahead] {
        let after = format!("after={place}");
        let answer = api.send(&get(paths::SSH_CHANGES, &bearer).query(&after)).await;
        assert_eq!(answer.code(), "cursor_unknown");
        let digest = place.split_once('.').unwrap().1;
        let told = json!({"cursor": place, "chainDigest": digest, "failures": []});
        let answer = api.send(&acknowledgement(&bearer, &told)).await;
        assert_eq!(answer.code(), "cursor_unknown");
    }
}

#[tokio::test]
async fn a_poll_waits_for_the_next_change() {
    let (api, bearer) = served().await;
    propagate(&api.place).await;
    let (wire, poll) = (api.wire.clone(), get(paths::SSH_CHANGES, &bearer).query("wait=25"));
    let waiting = tokio::spawn(async move { wire.send(&poll).await });
    // A poll has the process listen for changes, and reads what there is.
    let listens = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND query LIKE 'LISTEN ssh_access_%'";
    let sql = api.sql().await;
    eventually(LONG, "the poll", async || {
        (sql.query_one(listens, &[]).await.unwrap().get::<_, i64>(0) > 0).then_some(())
    })
    .await;
    let id = add(&api.place, "member-1", "alice", 0).await;
    let page = waiting.await.unwrap().json();
    assert_eq!(page["changes"][0]["keyId"], id.as_str());
}
