//! Algorithms, keys that fit them, and signatures that are not theirs.

use callers::login::LoginRefusal;
use serde_json::{Value, json};

use super::support::{SigningKey, base64, claims, jwt, verify};

const ALGORITHMS: [&str; 5] = ["RS256", "PS256", "ES256", "ES384", "EdDSA"];

#[test]
fn a_token_is_taken_by_each_algorithm_of_the_list() {
    for alg in ALGORITHMS {
        let key = SigningKey::new("k", alg);
        for jwk in [key.jwk(), key.bare_jwk()] {
            assert!(verify(&key.token(&claims()), &[jwk]).is_ok(), "{alg}");
        }
    }
}

#[test]
fn another_key_of_the_same_id_is_not_the_one() {
    for alg in ["ES256", "ES384", "EdDSA"] {
        let (key, other) = (SigningKey::new("k", alg), SigningKey::new("k", alg));
        let refused = verify(&key.token(&claims()), &[other.jwk()]);
        assert_eq!(refused, Err(LoginRefusal::Signature), "{alg}");
    }
}

#[test]
fn a_key_is_found_by_its_exact_id_alone() {
    let (key, other) = (SigningKey::new("k", "ES256"), SigningKey::new("K", "ES256"));
    assert!(verify(&key.token(&claims()), &[other.jwk(), key.jwk()]).is_ok());
    let refused = verify(&key.token(&claims()), &[other.jwk()]);
    assert_eq!(refused, Err(LoginRefusal::UnknownKey));
}

/// The algorithm is the key's own, whatever the header asks for.
#[test]
fn a_key_serves_no_algorithm_but_its_own() {
    for alg in ALGORITHMS {
        let key = SigningKey::new("k", alg);
        for other in ALGORITHMS {
            let token = key.sign(&json!({ "alg": other, "kid": "k", "typ": "at+jwt" }), &claims());
            let taken = verify(&token, &[key.jwk()]);
            let expected = if other == alg { None } else { Some(LoginRefusal::OtherAlgorithm) };
            assert_eq!(taken.err(), expected, "{other} by a key for {alg}");
        }
    }
    // An RSA key that names no algorithm serves both; a signature by one is none by the other.
    let key = SigningKey::new("k", "RS256");
    let token = key.sign(&json!({ "alg": "PS256", "kid": "k", "typ": "at+jwt" }), &claims());
    assert_eq!(verify(&token, &[key.bare_jwk()]), Err(LoginRefusal::Signature));
}

/// The public key as a shared secret: the oldest trick.
#[test]
fn no_secret_signs_a_token() {
    let key = SigningKey::new("k", "RS256");
    let modulus = key.jwk()["n"].as_str().unwrap().to_owned();
    for alg in ["HS256", "none"] {
        let header = json!({ "alg": alg, "kid": "k", "typ": "at+jwt" }).to_string();
        let signed =
            format!("{}.{}", base64(header.as_bytes()), base64(claims().to_string().as_bytes()));
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, modulus.as_bytes());
        let signature = base64(ring::hmac::sign(&secret, signed.as_bytes()).as_ref());
        let refused = verify(&jwt(&format!("{signed}.{signature}")), &[key.jwk()]);
        assert_eq!(refused, Err(LoginRefusal::Algorithm), "{alg}");
    }
}

#[test]
fn whatever_is_changed_in_a_token_it_is_good_no_more() {
    let key = SigningKey::new("k", "ES256");
    let text = key.token(&claims()).expose().to_owned();
    let mut tried = 0;
    for index in 0..text.len() {
        let old = text.as_bytes()[index];
        for new in [b'A', b'Z', b'_', old ^ 1, old ^ 4] {
            let mut changed = text.clone().into_bytes();
            changed[index] = new;
            let Ok(changed) = String::from_utf8(changed) else { continue };
            let Some(token) = callers::Jwt::parse(&changed).filter(|_| changed != text) else {
                continue;
            };
            tried += 1;
            let taken = verify(&token, &[key.jwk()]);
            assert!(taken.is_err(), "byte {index} of {text} as {}", char::from(new));
        }
    }
    assert!(tried > text.len(), "{tried} changes");
}

#[test]
fn a_signature_of_another_length_or_form_is_none() {
    let key = SigningKey::new("k", "ES256");
    let text = key.token(&claims()).expose().to_owned();
    let (signed, signature) = text.rsplit_once('.').unwrap();
    for (other, expected) in [
        ("AA".to_owned(), LoginRefusal::Signature),
        (signature[..signature.len() - 2].to_owned(), LoginRefusal::Signature),
        (format!("{signature}{signature}"), LoginRefusal::Signature),
        (base64(&[0; 64]), LoginRefusal::Signature),
        (base64(&[0xff; 64]), LoginRefusal::Signature),
        // Bits that are left over would give one signature two spellings.
        ("AB".to_owned(), LoginRefusal::Malformed),
        ("A".to_owned(), LoginRefusal::Malformed),
    ] {
        let refused = verify(&jwt(&format!("{signed}.{other}")), &[key.jwk()]).unwrap_err();
        assert_eq!(refused, expected, "{other}");
    }
}

#[test]
fn a_key_that_the_token_brings_along_is_not_looked_at() {
    let (ours, theirs) = (SigningKey::new("k", "ES256"), SigningKey::new("k", "ES256"));
    let mut header = theirs.header();
    header["jwk"] = theirs.jwk();
    let refused = verify(&theirs.sign(&header, &claims()), &[ours.jwk()]);
    assert_eq!(refused, Err(LoginRefusal::Signature));
    header["kid"] = Value::from("another");
    let refused = verify(&theirs.sign(&header, &claims()), &[ours.jwk()]);
    assert_eq!(refused, Err(LoginRefusal::UnknownKey));
}
