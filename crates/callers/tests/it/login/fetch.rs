//! How the issuer's keys are fetched, kept and gone without, at a peer that answers what a test says.

mod away;
mod flood;
mod shared;
mod trouble;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use callers::{
    Jwt,
    login::{
        Issuer, KeyTimes, Login, LoginError, LoginRefusal, LoginSettings, LoginTrouble,
        LoginVerifier,
    },
};
use serde_json::{Value, json};
use test_support::{Peer, Received, Reply, TestCa, eventually};

use super::support::{SigningKey, audience, claims, set};
use crate::support::now;

const DISCOVERY: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/certs";

/// An issuer, and a verifier that asks it.
struct World {
    peer: Peer,
    answers: Arc<Mutex<Answers>>,
    settings: LoginSettings,
    verifier: LoginVerifier,
    _folder: tempfile::TempDir,
}

/// What the issuer answers.
struct Answers {
    /// Its keys.
    keys: Vec<Value>,
    /// Something else to the one question or the other.
    discovery: Option<Reply>,
    set: Option<Reply>,
}

impl World {
    /// An issuer with these keys.
    async fn with(keys: &[&SigningKey]) -> Self {
        let keys = keys.iter().map(|key| key.jwk()).collect();
        let answers = Arc::new(Mutex::new(Answers { keys, discovery: None, set: None }));
        let ca = TestCa::new();
        let theirs = Arc::clone(&answers);
        let peer = Peer::start(&ca, move |request| theirs.lock().unwrap().to(request)).await;
        let folder = tempfile::tempdir().unwrap();
        let ca_file = folder.path().join("ca.pem");
        ca.write_to(&ca_file).unwrap();
        let settings = LoginSettings {
            issuer: Issuer::parse(peer.origin()).unwrap(),
            audience: audience(),
            ca_file,
            times: KeyTimes { within: Duration::from_secs(20), ..KeyTimes::default() },
            strangers: 64,
        };
        let verifier = LoginVerifier::open(settings.clone(), now).unwrap();
        Self { peer, answers, settings, verifier, _folder: folder }
    }

    /// The same issuer, asked by another verifier.
    fn verifier_with(&self, change: impl FnOnce(&mut LoginSettings)) -> LoginVerifier {
        let mut settings = self.settings.clone();
        change(&mut settings);
        LoginVerifier::open(settings, now).unwrap()
    }

    /// A token of this issuer.
    fn token(&self, key: &SigningKey) -> Jwt {
        key.token(&self.claims())
    }

    fn claims(&self) -> Value {
        let mut claims = claims();
        claims["iss"] = self.peer.origin().into();
        claims
    }

    async fn verify(&self, token: &Jwt) -> Result<Login, LoginError> {
        self.verifier.verify(token).await
    }

    /// What the issuer was asked for so far.
    fn asked(&self) -> Vec<String> {
        self.peer.received().into_iter().map(|request| request.target).collect()
    }

    /// How often its keys were fetched, or tried to be.
    fn fetches(&self) -> usize {
        self.asked().iter().filter(|target| *target == DISCOVERY).count()
    }

    fn rotate_to(&self, keys: &[&SigningKey]) {
        self.answers.lock().unwrap().keys = keys.iter().map(|key| key.jwk()).collect();
    }

    /// Answers every question with this, or as an issuer again.
    fn answer(&self, reply: Option<Reply>) {
        self.answers.lock().unwrap().discovery = reply;
    }
}

impl Answers {
    fn to(&self, request: &Received) -> Reply {
        let origin = format!("https://{}", request.headers["host"]);
        match request.target.as_str() {
            DISCOVERY => self.discovery.clone().unwrap_or_else(|| {
                let keys = format!("{origin}{KEYS}");
                Reply::json(200, json!({ "issuer": origin, "jwks_uri": keys }).to_string())
            }),
            KEYS => self.set.clone().unwrap_or_else(|| Reply::json(200, set(&self.keys))),
            _ => Reply::json(404, "{}"),
        }
    }
}

/// Lets time pass for whoever counts it.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn refused(outcome: Result<Login, LoginError>) -> LoginRefusal {
    let Err(LoginError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    refusal
}

fn trouble(outcome: Result<Login, LoginError>) -> LoginTrouble {
    let Err(LoginError::Trouble(trouble)) = outcome else { panic!("{outcome:?}") };
    trouble
}

/// The state, as somebody who counts requests sees it.
async fn until_fetches(world: &World, count: usize) {
    eventually(Duration::from_secs(20), "a fetch", async || {
        (world.fetches() >= count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_keys_are_found_by_discovery_and_kept() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    assert!(world.asked().is_empty(), "nothing is fetched before it is needed");
    for _ in 0..3 {
        world.verify(&world.token(&key)).await.unwrap();
    }
    assert_eq!(world.asked(), [DISCOVERY, KEYS]);
    for request in world.peer.received() {
        assert_eq!(request.method, "GET");
        assert!(!request.headers.contains_key("authorization"), "{request:?}");
    }
}

#[tokio::test]
async fn what_does_not_even_say_that_it_is_for_us_costs_no_fetch() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    let with = |name: &str, value: Value| {
        let mut claims = world.claims();
        claims[name] = value;
        key.token(&claims)
    };
    let none = json!({ "alg": "none", "kid": "k", "typ": "at+jwt" });
    for token in [
        with("iss", json!("https://other.example")),
        with("aud", json!("https://gitlab.example")),
        with("exp", json!(1)),
        with("typ", json!("ID")),
        key.sign(&none, &world.claims()),
        super::support::jwt("a.b.c"),
    ] {
        refused(world.verify(&token).await);
    }
    assert!(world.asked().is_empty(), "{:?}", world.asked());
}

#[tokio::test]
async fn whose_token_it_says_to_be_is_read_without_a_fetch() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    let mut expired = world.claims();
    expired["exp"] = json!(1);
    for token in [world.token(&key), key.token(&expired)] {
        assert!(world.verifier.is_named_by(&token));
    }
    // Of another issuer, of none, and of nobody knows which.
    let none = json!({ "sub": "system:serviceaccount:a:b" });
    let origin = world.peer.origin();
    let twice = format!(r#"{{"iss":"{origin}","iss":"{origin}"}}"#);
    let twice = super::support::jwt(&key.sign_text("{}", &twice));
    for token in [key.token(&claims()), key.token(&none), twice, super::support::jwt("a.b.c")] {
        assert!(!world.verifier.is_named_by(&token));
    }
    assert!(world.asked().is_empty());
}

#[tokio::test]
async fn keys_that_are_old_are_fetched_again_before_they_vouch() {
    let (old, new) = (SigningKey::new("old", "ES256"), SigningKey::new("new", "EdDSA"));
    let world = World::with(&[&old]).await;
    world.verify(&world.token(&old)).await.unwrap();
    world.rotate_to(&[&new]);
    pass(Duration::from_secs(599)).await;
    world.verify(&world.token(&old)).await.unwrap();
    assert_eq!(world.fetches(), 1);
    pass(Duration::from_secs(1)).await;
    // A key that was withdrawn vouches for nobody then.
    assert_eq!(refused(world.verify(&world.token(&old)).await), LoginRefusal::UnknownKey);
    assert_eq!(world.fetches(), 2);
    world.verify(&world.token(&new)).await.unwrap();
    assert_eq!(world.fetches(), 2);
}

#[tokio::test]
async fn a_rotated_key_is_found_by_one_fetch() {
    let (old, new) = (SigningKey::new("old", "ES256"), SigningKey::new("new", "ES256"));
    let world = World::with(&[&old]).await;
    world.verify(&world.token(&old)).await.unwrap();
    world.rotate_to(&[&old, &new]);
    pass(Duration::from_secs(30)).await;
    for _ in 0..3 {
        world.verify(&world.token(&new)).await.unwrap();
        world.verify(&world.token(&old)).await.unwrap();
    }
    assert_eq!(world.fetches(), 2);
}

#[tokio::test]
async fn nothing_of_a_token_or_a_key_is_printed() {
    let key = SigningKey::new("s3cret-kid", "ES256");
    let world = World::with(&[]).await;
    let token = world.token(&key);
    let outcome = format!("{:?} {:?} {token:?}", world.verify(&token).await, world.verifier);
    for part in token.expose().split('.').chain(["s3cret", "5f0c4a8e"]) {
        assert!(!outcome.contains(part), "{outcome}");
    }
}
