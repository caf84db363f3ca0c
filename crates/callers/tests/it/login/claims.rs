//! Each rule about what a token says, broken alone. All of them are signed well.

use callers::login::{LEEWAY, LoginRefusal, MemberName, NotAMemberName};
use chrono::{DateTime, TimeDelta};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{AUDIENCE, ISSUER, MEMBER, SigningKey, claims, jwt, verify, with};
use crate::support::now;

/// What a token with this header and these claims comes to.
fn refusal(header: &Value, claims: &Value) -> Option<LoginRefusal> {
    let key = SigningKey::new("k", "ES256");
    verify(&key.sign(header, claims), &[key.jwk()]).err()
}

fn header_with(name: &str, value: Value) -> Value {
    let mut header = json!({ "alg": "ES256", "kid": "k", "typ": "at+jwt" });
    if value.is_null() {
        header.as_object_mut().unwrap().remove(name);
    } else {
        header[name] = value;
    }
    header
}

fn of_claims(claims: &Value) -> Option<LoginRefusal> {
    refusal(&header_with("", Value::Null), claims)
}

#[test]
fn an_access_token_of_the_issuer_for_us_says_who_logged_in_and_until_when() {
    let key = SigningKey::new("k", "ES256");
    let login = verify(&key.token(&claims()), &[key.jwk()]).unwrap();
    assert_eq!(login.member.as_str(), MEMBER);
    assert_eq!(login.expires_at, now() + TimeDelta::seconds(300));
}

#[test]
fn each_member_of_the_header_has_its_rule() {
    use LoginRefusal::{Algorithm, Critical, Header, NotAnAccessToken};
    for (name, value, expected) in [
        ("alg", json!("none"), Some(Algorithm)),
        ("alg", json!("HS256"), Some(Algorithm)),
        ("alg", json!("RS512"), Some(Algorithm)),
        ("alg", json!("es256"), Some(Algorithm)),
        ("alg", json!(""), Some(Algorithm)),
        ("alg", json!(1), Some(Header("alg"))),
        ("alg", Value::Null, Some(Header("alg"))),
        ("kid", Value::Null, Some(Header("kid"))),
        ("kid", json!(7), Some(Header("kid"))),
        ("kid", json!(["k"]), Some(Header("kid"))),
        ("crit", json!(["exp"]), Some(Critical)),
        ("crit", json!([]), Some(Critical)),
        ("typ", json!("application/at+jwt"), None),
        ("typ", json!("AT+JWT"), None),
        ("typ", json!(["at+jwt"]), Some(Header("typ"))),
        ("typ", json!("logout+jwt"), Some(NotAnAccessToken)),
        ("typ", json!("at+jwt "), Some(NotAnAccessToken)),
        ("typ", json!("JWS"), Some(NotAnAccessToken)),
        // Nothing that it offers is taken for a key, or fetched.
        ("jku", json!("https://evil.example/keys"), None),
        ("x5u", json!("https://evil.example/x"), None),
    ] {
        assert_eq!(
            refusal(&header_with(name, value.clone()), &claims()),
            expected,
            "{name} {value}"
        );
    }
}

#[test]
fn each_claim_has_its_rule() {
    use LoginRefusal::{
        Claim, Expired, NotAnAccessToken, NotYetValid, OtherAudience, OtherIssuer,
        SenderConstrained, SeveralAudiences,
    };
    let now = now().timestamp();
    let long = "m".repeat(255);
    for (name, value, expected) in [
        ("iss", json!("https://other.example/realms/members"), Some(OtherIssuer)),
        ("iss", json!(format!("{ISSUER}/")), Some(OtherIssuer)),
        ("iss", json!("HTTPS://login.example/realms/members"), Some(OtherIssuer)),
        ("iss", json!([ISSUER]), Some(Claim("iss"))),
        ("iss", Value::Null, Some(Claim("iss"))),
        ("aud", json!([AUDIENCE]), None),
        // A token that a Runtime was given for an action.
        ("aud", json!("https://gitlab.example"), Some(OtherAudience)),
        ("aud", json!(["https://gitlab.example"]), Some(OtherAudience)),
        ("aud", json!([AUDIENCE, "https://gitlab.example"]), Some(SeveralAudiences)),
        ("aud", json!(["https://gitlab.example", AUDIENCE]), Some(SeveralAudiences)),
        ("aud", json!([AUDIENCE, AUDIENCE]), Some(SeveralAudiences)),
        ("aud", json!([]), Some(OtherAudience)),
        ("aud", json!(""), Some(OtherAudience)),
        ("aud", json!(format!("{AUDIENCE}/")), Some(OtherAudience)),
        ("aud", json!({ "0": AUDIENCE }), Some(Claim("aud"))),
        ("aud", json!([AUDIENCE, 1]), Some(Claim("aud"))),
        ("aud", Value::Null, Some(Claim("aud"))),
        ("exp", Value::Null, Some(Claim("exp"))),
        ("exp", json!((now + 300).to_string()), Some(Claim("exp"))),
        ("exp", json!(1.5e9), Some(Claim("exp"))),
        ("exp", json!(-1), Some(Claim("exp"))),
        ("exp", json!(u64::MAX), Some(Claim("exp"))),
        ("exp", json!(now - 29), None),
        ("exp", json!(now - 30), Some(Expired)),
        ("exp", json!(0), Some(Expired)),
        ("nbf", json!(now + 30), None),
        ("nbf", json!(now + 31), Some(NotYetValid)),
        ("nbf", json!("soon"), Some(Claim("nbf"))),
        ("iat", Value::Null, None),
        ("iat", json!(now + 30), None),
        ("iat", json!(now + 31), Some(NotYetValid)),
        ("iat", json!(true), Some(Claim("iat"))),
        ("sub", Value::Null, Some(Claim("sub"))),
        ("sub", json!(""), Some(Claim("sub"))),
        ("sub", json!(7), Some(Claim("sub"))),
        ("sub", json!("two words"), Some(Claim("sub"))),
        ("sub", json!("m\u{e9}mber"), Some(Claim("sub"))),
        ("sub", json!(long), None),
        ("sub", json!(format!("{long}m")), Some(Claim("sub"))),
        ("typ", json!("Bearer"), None),
        ("typ", json!("ID"), Some(NotAnAccessToken)),
        ("typ", json!("Refresh"), Some(NotAnAccessToken)),
        ("typ", json!("bearer"), Some(NotAnAccessToken)),
        ("typ", json!(1), Some(Claim("typ"))),
        ("cnf", json!({ "jkt": "a" }), Some(SenderConstrained)),
        ("cnf", json!(false), Some(SenderConstrained)),
        // What is nobody's rule is the issuer's matter.
        ("nonce", json!("n"), None),
        ("azp", json!("anybody"), None),
    ] {
        assert_eq!(of_claims(&with(name, value.clone())), expected, "{name} {value}");
    }
    let mut both = with("nbf", json!(now + 31));
    both["iat"] = json!(now);
    assert_eq!(of_claims(&both), Some(NotYetValid));
}

/// What says so itself, at both kinds of issuer.
#[test]
fn an_access_token_is_told_from_every_other_that_the_issuer_signs() {
    for (header, own, is_taken) in [
        (json!("at+jwt"), Value::Null, true),
        (json!("at+jwt"), json!("Bearer"), true),
        (json!("JWT"), json!("Bearer"), true),
        (json!("jwt"), json!("Bearer"), true),
        (Value::Null, json!("Bearer"), true),
        // The ID token of one that follows RFC 9068, and of Keycloak.
        (json!("JWT"), Value::Null, false),
        (Value::Null, Value::Null, false),
        (json!("JWT"), json!("ID"), false),
        (Value::Null, json!("ID"), false),
        (json!("at+jwt"), json!("ID"), false),
        // Others of Keycloak.
        (json!("JWT"), json!("Refresh"), false),
        (json!("JWT"), json!("Offline"), false),
        (json!("JWT"), json!("Logout"), false),
        (json!("JWT"), json!("DPoP"), false),
        (json!("JWT"), json!(""), false),
        (json!("logout+jwt"), json!("Bearer"), false),
        (json!("secevent+jwt"), Value::Null, false),
    ] {
        let refused = refusal(&header_with("typ", header.clone()), &with("typ", own.clone()));
        let expected = (!is_taken).then_some(LoginRefusal::NotAnAccessToken);
        assert_eq!(refused, expected, "{header} {own}");
    }
}

#[test]
fn a_member_that_is_there_twice_and_what_is_no_object_is_refused() {
    let key = SigningKey::new("k", "ES256");
    let (header, claims) = (key.header().to_string(), claims().to_string());
    let twice = |text: &str, more: &str| text.replacen('{', &format!("{{{more},"), 1);
    assert!(verify(&jwt(&key.sign_text(&header, &claims)), &[key.jwk()]).is_ok());
    for (header, claims) in [
        (twice(&header, r#""alg":"none""#), claims.clone()),
        (twice(&header, r#""kid":"k""#), claims.clone()),
        (twice(&header, r#""x":1,"x":1"#), claims.clone()),
        (header.clone(), twice(&claims, r#""aud":"others""#)),
        (header.clone(), twice(&claims, &format!(r#""\u0061ud":"{AUDIENCE}""#))),
        (header.clone(), twice(&claims, r#""x":1,"x":2"#)),
        (format!("[{header}]"), claims.clone()),
        (header.clone(), format!("[{claims}]")),
        (header.clone(), format!("{claims}x")),
        (header.clone(), format!("{claims}{claims}")),
        (header.clone(), "\u{feff}{}".to_owned()),
        (r#""text""#.to_owned(), claims.clone()),
        ("{".to_owned(), claims.clone()),
    ] {
        let refused = verify(&jwt(&key.sign_text(&header, &claims)), &[key.jwk()]).unwrap_err();
        assert_eq!(refused, LoginRefusal::Malformed, "{header} {claims}");
    }
}

#[test]
fn a_name_of_a_member_is_1_to_255_visible_ascii_characters() {
    for good in ["a", "~!\"", &"m".repeat(255)] {
        assert_eq!(MemberName::parse(good).unwrap().to_string(), good);
    }
    for bad in ["", " ", "a b", "a\n", "\u{e9}", &"m".repeat(256)] {
        assert_eq!(MemberName::parse(bad), Err(NotAMemberName), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn a_token_is_taken_in_its_time_and_no_other(
        exp in -100..100i64, nbf in proptest::option::of(-100..100i64), iat in proptest::option::of(-100..100i64),
    ) {
        let at = |seconds: i64| now() + TimeDelta::seconds(seconds);
        let mut claims = with("iat", Value::Null);
        claims["exp"] = json!(at(exp).timestamp());
        for (name, value) in [("nbf", nbf), ("iat", iat)] {
            if let Some(value) = value {
                claims[name] = json!(at(value).timestamp());
            }
        }
        let begun = |value: Option<i64>| value.is_none_or(|value| at(value) <= now() + LEEWAY);
        let good = at(exp) + LEEWAY > now() && begun(nbf) && begun(iat);
        prop_assert_eq!(of_claims(&claims).is_none(), good);
    }

    #[test]
    fn a_login_expires_when_its_token_says(seconds in 0..10_000_000i64) {
        let key = SigningKey::new("k", "EdDSA");
        let expiry = now().timestamp() + seconds;
        let login = verify(&key.token(&with("exp", json!(expiry))), &[key.jwk()]).unwrap();
        prop_assert_eq!(Some(login.expires_at), DateTime::from_timestamp(expiry, 0));
    }
}
