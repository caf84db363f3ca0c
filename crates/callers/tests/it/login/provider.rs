//! A real issuer: the package `oidc-provider`, by its token endpoint, its discovery and its keys.

use std::time::Duration;

use callers::{
    Jwt,
    login::{
        Issuer, KeyTimes, Login, LoginError, LoginRefusal, LoginSettings, LoginTrouble,
        LoginVerifier,
    },
};
use chrono::{DateTime, TimeDelta, Utc};
use test_support::{AccessRequest, OidcProvider, TestCa};

use super::support::{AUDIENCE, MEMBER, audience, jwt};

const DISCOVERY: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/jwks";
const OURS: AccessRequest<'static> = AccessRequest::new(&[AUDIENCE]);
/// What a Runtime is given a token for.
const ACTION: &str = "https://gitlab.example";

#[expect(clippy::disallowed_methods, reason = "the issuer's clock is the machine's")]
fn clock() -> DateTime<Utc> {
    Utc::now()
}

fn a_minute_later() -> DateTime<Utc> {
    clock() + TimeDelta::seconds(60)
}

struct World {
    provider: OidcProvider,
    verifier: LoginVerifier,
    folder: tempfile::TempDir,
}

impl World {
    /// An issuer, and a verifier whose fetches come closer together.
    async fn new() -> Self {
        let ca = TestCa::new();
        let provider = OidcProvider::start(&ca).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        ca.write_to(&folder.path().join("ca.pem")).unwrap();
        let verifier = verifier(&provider, &folder, clock);
        Self { provider, verifier, folder }
    }

    async fn verify(&self, token: &str) -> Result<Login, LoginError> {
        self.verifier.verify(&jwt(token)).await
    }

    async fn refusal(&self, token: &str) -> LoginRefusal {
        match self.verify(token).await {
            Err(LoginError::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    }
}

fn verifier(
    provider: &OidcProvider,
    folder: &tempfile::TempDir,
    clock: fn() -> DateTime<Utc>,
) -> LoginVerifier {
    let settings = LoginSettings {
        issuer: Issuer::parse(provider.issuer()).unwrap(),
        audience: audience(),
        ca_file: folder.path().join("ca.pem"),
        times: KeyTimes { within: Duration::from_secs(20), ..KeyTimes::default() },
        strangers: 8,
    };
    LoginVerifier::open(settings, clock).unwrap()
}

async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn its_access_tokens_for_us_are_taken_by_every_algorithm() {
    let world = World::new().await;
    for algorithm in ["RS256", "PS256", "ES256", "ES384", "EdDSA"] {
        let tokens = world.provider.member(MEMBER, OURS.algorithm(algorithm)).await;
        let login = world.verify(&tokens.access_token).await.unwrap();
        assert_eq!(login.member.as_str(), MEMBER, "{algorithm}");
        let left = login.expires_at - clock();
        assert!(TimeDelta::seconds(200) < left && left <= TimeDelta::seconds(300), "{left}");
    }
    // A client of its own, without a member, is one by its own name.
    let login = world.verify(&world.provider.client(OURS).await).await.unwrap();
    assert_eq!(login.member.as_str(), "control-plane");
    // All of it by one fetch.
    for path in [DISCOVERY, KEYS] {
        assert_eq!(world.provider.asked(path).await, 1, "{path}");
    }
}

#[tokio::test]
async fn its_id_tokens_are_refused_also_where_we_are_their_audience() {
    let world = World::new().await;
    let tokens = world.provider.member(MEMBER, OURS).await;
    assert_eq!(world.refusal(&tokens.id_token).await, LoginRefusal::OtherAudience);
    // As if the client had our name.
    let settings = LoginSettings {
        issuer: Issuer::parse(world.provider.issuer()).unwrap(),
        audience: callers::login::Audience::parse("control-plane").unwrap(),
        ca_file: world.folder.path().join("ca.pem"),
        times: KeyTimes::default(),
        strangers: 8,
    };
    let verifier = LoginVerifier::open(settings, clock).unwrap();
    let outcome = verifier.verify(&jwt(&tokens.id_token)).await;
    assert!(
        matches!(outcome, Err(LoginError::Refused(LoginRefusal::NotAnAccessToken))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_token_for_an_action_of_a_runtime_is_refused_also_where_it_names_us_as_well() {
    let world = World::new().await;
    for (audiences, expected) in [
        (&[ACTION][..], LoginRefusal::OtherAudience),
        (&[ACTION, AUDIENCE], LoginRefusal::SeveralAudiences),
        (&[AUDIENCE, ACTION], LoginRefusal::SeveralAudiences),
    ] {
        let tokens = world.provider.member(MEMBER, AccessRequest::new(audiences)).await;
        assert_eq!(world.refusal(&tokens.access_token).await, expected, "{audiences:?}");
    }
}

#[tokio::test]
async fn a_token_whose_time_is_over_is_refused_and_one_within_the_leeway_is_not() {
    let world = World::new().await;
    let short = world.provider.member(MEMBER, OURS.life(20)).await.access_token;
    let long = world.provider.member(MEMBER, OURS).await.access_token;
    world.verify(&short).await.unwrap();
    let later = verifier(&world.provider, &world.folder, a_minute_later);
    let outcome = later.verify(&jwt(&short)).await;
    assert!(matches!(outcome, Err(LoginError::Refused(LoginRefusal::Expired))), "{outcome:?}");
    later.verify(&jwt(&long)).await.unwrap();
    // Half a minute is for clocks that are apart.
    let tolerated = world.provider.member(MEMBER, OURS.life(59)).await.access_token;
    later.verify(&jwt(&tolerated)).await.unwrap();
}

#[tokio::test]
async fn a_token_that_was_changed_or_signed_by_another_issuer_is_refused() {
    let (world, other) = (World::new().await, World::new().await);
    let token = world.provider.member(MEMBER, OURS).await.access_token;
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    let forged = format!("{signed}.{first}{}", &signature[1..]);
    assert_eq!(world.refusal(&forged).await, LoginRefusal::Signature);
    let token = other.provider.member(MEMBER, OURS).await.access_token;
    assert_eq!(world.refusal(&token).await, LoginRefusal::OtherIssuer);
}

#[tokio::test]
async fn its_rotated_keys_are_found_by_one_fetch_and_those_that_were_end() {
    let world = World::new().await;
    let old = world.provider.member(MEMBER, OURS).await.access_token;
    world.verify(&old).await.unwrap();
    world.provider.rotate().await;
    let new = world.provider.member(MEMBER, OURS).await.access_token;
    pass(Duration::from_secs(30)).await;
    for _ in 0..3 {
        world.verify(&new).await.unwrap();
        assert_eq!(world.refusal(&old).await, LoginRefusal::UnknownKey);
    }
    for path in [DISCOVERY, KEYS] {
        assert_eq!(world.provider.asked(path).await, 2, "{path}");
    }
}

#[tokio::test]
async fn garbage_makes_it_be_asked_once_in_each_interval() {
    let world = World::new().await;
    let token = world.provider.member(MEMBER, OURS).await.access_token;
    world.verify(&token).await.unwrap();
    // Signed by an issuer whose keys it never had, in its name.
    let claims = token.split('.').nth(1).unwrap();
    let garbage: Vec<Jwt> = (0..200)
        .map(|number| {
            let header = format!(r#"{{"alg":"RS256","kid":"k{number}","typ":"at+jwt"}}"#);
            jwt(&format!("{}.{claims}.AAAA", super::support::base64(header.as_bytes())))
        })
        .collect();
    for interval in 1..=3 {
        for token in &garbage {
            let outcome = world.verifier.verify(token).await;
            assert!(
                matches!(outcome, Err(LoginError::Refused(LoginRefusal::UnknownKey))),
                "{outcome:?}"
            );
        }
        assert_eq!(world.provider.asked(DISCOVERY).await, interval);
        world.verify(&token).await.unwrap();
        pass(Duration::from_secs(30)).await;
    }
}

#[tokio::test]
async fn while_it_is_down_its_last_keys_vouch_for_an_hour_and_then_again_when_it_is_back() {
    let mut world = World::new().await;
    let token = world.provider.member(MEMBER, OURS.life(100_000)).await.access_token;
    world.verify(&token).await.unwrap();
    world.provider.kill();
    pass(Duration::from_secs(3_500)).await;
    world.verify(&token).await.unwrap();
    assert!(world.verifier.trouble().borrow().is_some());
    pass(Duration::from_secs(100)).await;
    let outcome = world.verify(&token).await;
    assert!(
        matches!(outcome, Err(LoginError::Trouble(LoginTrouble::Unanswered { .. }))),
        "{outcome:?}"
    );
    world.provider.start_again().await.unwrap();
    let token = world.provider.member(MEMBER, OURS).await.access_token;
    pass(Duration::from_secs(3)).await;
    world.verify(&token).await.unwrap();
    assert!(world.verifier.trouble().borrow().is_none());
}
