//! Members who logged in: their access tokens, and what the issuer says of itself and its keys.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use callers::{
    Jwt,
    login::{Audience, Issuer, LEEWAY},
    parsers,
};
use chrono::{DateTime, Utc};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use url::Url;

use crate::{SECRET, assert_quiet, kubernetes::whole, with_secrets};

const ISSUER: &str = "https://login.example/realms/x";
const AUDIENCE: &str = "us";

/// The first line is the header, the rest are the claims; both are signed, so that what is behind a
/// signature is reached. What is taken breaks no rule by another reader, and is good with that
/// signature alone.
pub(crate) fn token(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let (header, claims) = text.split_once('\n').unwrap_or((&text, ""));
    let signed = format!("{}.{}", base64(header.as_bytes()), base64(claims.as_bytes()));
    let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let signature = key.sign(signed.as_bytes());
    let Some(token) = Jwt::parse(&format!("{signed}.{}", base64(signature.as_ref()))) else {
        assert!(header.is_empty() || claims.is_empty() || text.len() > 8 * 1024);
        return;
    };
    let now: DateTime<Utc> = "2030-01-01T00:00:00Z".parse().unwrap();
    let keys = json!({ "keys": [
        { "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": base64(key.public_key().as_ref()) },
    ]});
    let verify = |token: &Jwt| {
        let (issuer, audience) =
            (Issuer::parse(ISSUER).unwrap(), Audience::parse(AUDIENCE).unwrap());
        parsers::login(token, keys.to_string().as_bytes(), issuer, audience, now)
    };
    match verify(&token) {
        Ok(login) => {
            crate::taken();
            let mut other = signature.as_ref().to_vec();
            other[0] ^= 1;
            let other = Jwt::parse(&format!("{signed}.{}", base64(&other))).unwrap();
            assert!(verify(&other).is_err());
            let (Some(header), Some(claims)) = (whole(header), whole(claims)) else { return };
            assert_eq!((&header["alg"], &header["kid"]), (&json!("EdDSA"), &json!("k")));
            assert!(header.get("crit").is_none() && claims.get("cnf").is_none());
            assert!(is_access_token(header["typ"].as_str(), claims.get("typ")));
            assert_eq!(claims["iss"], ISSUER);
            assert!(claims["aud"] == AUDIENCE || claims["aud"] == json!([AUDIENCE]));
            assert_eq!(claims["sub"], login.member.as_str());
            assert!((1..=255).contains(&login.member.as_str().len()));
            let time = |name: &str| claims.get(name).map(|time| time.as_i64().unwrap());
            assert_eq!(time("exp"), Some(login.expires_at.timestamp()));
            assert!(login.expires_at > now - LEEWAY);
            let begun = (now + LEEWAY).timestamp();
            assert!(time("nbf").max(time("iat")).is_none_or(|time| time <= begun));
        }
        Err(refusal) => {
            let told = format!("{refusal} {refusal:?}");
            assert_quiet(&told, SECRET);
            assert!(told.len() <= 120, "{told}");
        }
    }
}

fn is_access_token(header: Option<&str>, own: Option<&Value>) -> bool {
    let header = header.unwrap_or("JWT").to_lowercase();
    let says_so = header == "at+jwt" || header == "application/at+jwt";
    match own {
        None => says_so,
        Some(own) => own == "Bearer" && (says_so || header == "jwt"),
    }
}

/// As a set of keys, and as a discovery document. What is taken of a set is there once by another
/// reader, and public; what is taken of a document is at the issuer's own origin.
pub(crate) fn keys(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    match parsers::login_keys(text.as_bytes()) {
        Ok(ids) => {
            crate::taken();
            assert!((1..=64).contains(&ids.len()));
            if let Some(set) = whole(&text) {
                let all = set["keys"].as_array().unwrap();
                assert!(all.len() <= 64);
                for id in ids {
                    let mut of_id = all.iter().filter(|key| key["kid"] == id.as_str());
                    assert!(of_id.any(is_public), "{id}");
                }
            }
        }
        Err(error) => assert_quiet(&format!("{error} {error:?}"), SECRET),
    }
    let issuer = Issuer::parse(ISSUER).unwrap();
    match parsers::login_keys_path(text.as_bytes(), &issuer) {
        Ok(path) => {
            crate::taken();
            let url = Url::parse(&format!("{}{path}", issuer.origin())).unwrap();
            assert_eq!(url.origin().ascii_serialization(), issuer.origin().as_str());
            if let Some(document) = whole(&text) {
                assert_eq!(document["issuer"], ISSUER);
                let named = Url::parse(document["jwks_uri"].as_str().unwrap()).unwrap();
                assert_eq!(named, url);
            }
        }
        Err(error) => assert_quiet(&format!("{error} {error:?}"), SECRET),
    }
}

fn is_public(key: &Value) -> bool {
    let is_none_or = |name: &str, value: &str| key.get(name).is_none_or(|there| there == value);
    let kind = (key["kty"].as_str(), key["crv"].as_str());
    let parts: &[&str] = match kind {
        (Some("RSA"), _) => &["n", "e"],
        (Some("EC"), Some("P-256" | "P-384")) => &["x", "y"],
        (Some("OKP"), Some("Ed25519")) => &["x"],
        _ => return false,
    };
    key.get("d").is_none()
        && key.get("k").is_none()
        && is_none_or("use", "sig")
        && parts.iter().all(|name| key[*name].is_string())
}

fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
