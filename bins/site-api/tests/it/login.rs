//! Members and operators: what the process is told of their login issuer, and how it is with its keys.

mod settings;

use std::{path::PathBuf, process::Command};

use serde_json::Value;
use test_support::{AccessRequest, OidcProvider, TestCa, eventually};

use crate::support::{Api, CASES, Caller, Case, Cluster, LONG, Place, Request, plain};

const ISSUER: &str = "SITE_API_LOGIN_ISSUER";
const AUDIENCE: &str = "SITE_API_LOGIN_AUDIENCE";
const CA: &str = "SITE_API_LOGIN_CA_FILE";

/// Our own name at the issuer.
const US: &str = "site-control-api";

/// A place, and an issuer beside it.
struct World {
    place: Place,
    provider: OidcProvider,
    ca_file: PathBuf,
}

impl World {
    async fn new() -> Self {
        let place = Place::prepare().await;
        let ca = TestCa::new();
        let ca_file = place.site.file("login-ca.pem");
        ca.write_to(&ca_file).unwrap();
        let provider = OidcProvider::start(&ca).await.unwrap();
        Self { place, provider, ca_file }
    }

    fn command(&self) -> Command {
        let mut command = self.place.command();
        command.env(ISSUER, self.provider.issuer()).env(AUDIENCE, US).env(CA, &self.ca_file);
        command
    }

    async fn start(self) -> (Api, OidcProvider) {
        let command = self.command();
        (self.place.start_by(command).await, self.provider)
    }
}

/// The reason of the alarm about the issuer.
async fn alarm(api: &Api) -> Option<String> {
    let answer = plain(api.admin, &Request::new("GET", "/alarms")).await.json();
    let mut alarms = answer["alarms"].as_array().unwrap().iter();
    let alarm: &Value = alarms.find(|alarm| alarm["name"] == "login")?;
    Some(alarm["reason"].as_str().unwrap().to_owned())
}

async fn until_alarm(api: &Api) -> String {
    eventually(LONG, "the alarm", async || alarm(api).await).await
}

async fn until_no_alarm(api: &Api) {
    let what = "the end of the alarm";
    eventually(LONG, what, async || alarm(api).await.is_none().then_some(())).await;
}

#[tokio::test]
async fn the_keys_are_fetched_once_at_the_start_and_then_when_somebody_needs_them() {
    let (api, provider) = World::new().await.start().await;
    eventually(LONG, "the first fetch", async || {
        (api.metric("login_key_fetches_total").await > 0.0).then_some(())
    })
    .await;
    assert_eq!(alarm(&api).await, None);
    assert_eq!(provider.asked("/.well-known/openid-configuration").await, 1);
    assert_eq!(provider.asked("/jwks").await, 1);
    let line = |line: &str| line.contains("\"login.keys_replaced\"");
    let line = api.process.wait_for_line("the keys", LONG, line).await.unwrap();
    assert!(line.contains("\"keys.count\":5"), "{line}");
}

#[tokio::test]
async fn an_issuer_that_is_away_does_not_refuse_the_start_and_its_alarm_goes_by_itself() {
    let world = World::new().await;
    world.provider.kill();
    let (api, mut provider) = world.start().await;
    let reason = until_alarm(&api).await;
    assert!(reason.contains("no usable answer for its discovery document"), "{reason}");
    // Who needs no issuer is served.
    assert_eq!(api.send(&api.poll("after=0")).await.status, 200);
    provider.start_again().await.unwrap();
    until_no_alarm(&api).await;
    let lines = api.process.lines();
    let told = lines.iter().filter(|line| line.text.contains("\"alarm.raised\"")).count();
    assert_eq!(told, 1, "{lines:#?}");
}

#[tokio::test]
async fn a_server_that_the_ca_file_does_not_vouch_for_is_told_as_that() {
    let world = World::new().await;
    TestCa::new().write_to(&world.ca_file).unwrap();
    let (api, provider) = world.start().await;
    let reason = until_alarm(&api).await;
    assert!(reason.contains("certificate of the other side is not trusted"), "{reason}");
    assert_eq!(provider.asked("/.well-known/openid-configuration").await, 0);
}

/// A member is no Runtime, and a cluster is not shown their token.
#[tokio::test]
async fn a_members_token_is_none_of_a_runtime_and_no_cluster_is_asked_about_it() {
    let world = World::new().await;
    let cluster = Cluster::beside(&world.place).await;
    let mut command = world.command();
    cluster.settings(&mut command);
    command.env("SITE_API_LOG", "trace");
    let api = world.place.start_by(command).await;
    let token = world.provider.member("a-member", AccessRequest::new(&[US])).await.access_token;
    let of_runtimes = |case: &Case| matches!(case.caller, Caller::Runtime | Caller::Reader);
    for case in CASES.into_iter().filter(of_runtimes) {
        let request = case.idle_request("cmd_00000000000000000000000000000000");
        let answer = api.send(&request.bearer(&token)).await;
        assert_eq!(answer.code(), "unauthenticated", "{}", case.pattern);
    }
    assert_eq!(cluster.api.reviews_of(&token), 0);
    let lines = api.process.lines();
    for part in token.split('.').chain([token.as_str()]).filter(|part| part.len() > 60) {
        assert!(!lines.iter().any(|line| line.text.contains(part)), "{part} is in the log");
    }
    // The cluster's own are reviewed as ever.
    let token = cluster.token();
    assert_eq!(api.answer_to(&token).await.status, 200);
    assert!(cluster.api.reviews_of(&token) > 0);
}

/// What can't be verified is not refused, and what is bad by itself is refused all the same.
#[tokio::test]
async fn a_token_that_cant_be_verified_now_is_told_apart_from_a_bad_one() {
    let world = World::new().await;
    let token = async |audience| {
        world.provider.member("a-member", AccessRequest::new(&[audience])).await.access_token
    };
    let (good, bad) = (token(US).await, token("another-api").await);
    world.provider.pause();
    let mut command = world.command();
    // A quarter of them may wait for the issuer's keys.
    command.env("SITE_API_MAX_REQUESTS", "4");
    let api = world.place.start_by(command).await;
    let read = |token: &str| Request::new("GET", "/v1/site/executions/run-1/output").bearer(token);
    let told = async |token: &str| {
        let answer = api.send(&read(token)).await;
        (answer.status, answer.code(), answer.problem().retryable)
    };
    let unavailable = (503, "login_unavailable".to_owned(), true);
    let overloaded = (503, "overloaded".to_owned(), true);
    // Nobody waits between two tries.
    eventually(LONG, "one who waits and one too many", async || {
        let (one, other) = tokio::join!(told(&good), told(&good));
        for told in [&one, &other] {
            assert!([&unavailable, &overloaded].contains(&told), "{told:?}");
        }
        ([&one, &other].contains(&&unavailable) && [&one, &other].contains(&&overloaded))
            .then_some(())
    })
    .await;
    let refused = (401, "unauthenticated".to_owned(), false);
    assert_eq!(told(&bad).await, refused);

    world.provider.resume();
    until_no_alarm(&api).await;
    // Let in: to a listener without private reads.
    assert_eq!(told(&good).await.1, "execution_authority_disabled");
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    let forged = format!("{signed}.{first}{}", &signature[1..]);
    for token in [&bad, &forged] {
        assert_eq!(told(token).await, refused);
    }
}
