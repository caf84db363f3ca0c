//! Who calls: the `Authorization` header, the token of an agent's file, and the file of the grants.

use std::time::{Duration, Instant};

use callers::{Found, Grants, LiveGrants, NativeBearer, Presented, presented};
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use https_client::BearerToken;

use crate::{SECRET, assert_quiet, kubernetes, with_secrets};

/// A secret that a bearer can have.
const OF_A_BEARER: &str = "9v2mzqxj7k4w9v2mzqxj7k4w9v2mzqxj";

/// Each line is a value of the header.
pub(crate) fn authorization(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    let text = String::from_utf8_lossy(bytes).replace('*', OF_A_BEARER);
    for line in text.split('\n') {
        let Ok(value) = HeaderValue::from_bytes(line.as_bytes()) else { return };
        headers.append(AUTHORIZATION, value);
    }
    match presented(&headers) {
        Ok(Presented::NativeBearer(bearer)) => {
            let (scheme, token) = text.split_once(' ').unwrap();
            assert!(scheme.eq_ignore_ascii_case("bearer"));
            crate::taken();
            assert_eq!(bearer.expose(), token);
            assert!(token.starts_with(&format!("scnb_{}.", bearer.id())) && token.len() == 54);
            let again = NativeBearer::parse(token).unwrap();
            assert_eq!((again.id(), again.digest()), (bearer.id(), bearer.digest()));
            assert_quiet(&format!("{bearer:?}"), &token[22..]);
        }
        Ok(Presented::Jwt(read)) => {
            assert_eq!(Some(read.expose()), text.split_once(' ').map(|(_, token)| token));
            kubernetes::jwt(&read);
        }
        Ok(_) => {
            let (_, token) = text.split_once(' ').unwrap();
            assert!(!token.starts_with("scnb_"));
            assert!(token.bytes().all(|byte| byte.is_ascii_graphic()));
            assert!(token.split('.').count() != 3 || !kubernetes::is_of_their_form(token));
        }
        Err(error) => {
            assert_quiet(&format!("{error} {error:?}"), OF_A_BEARER);
            assert!(
                text.split('\n').count() > 1 || NativeBearer::parse(&after_scheme(&text)).is_err()
            );
        }
    }
}

fn after_scheme(text: &str) -> String {
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.to_owned(),
        _ => String::new(),
    }
}

/// What the file of an agent holds, without the white space around it, is what it sends, and the other
/// side reads it alike.
pub(crate) fn token(bytes: &[u8]) {
    match BearerToken::parse(bytes) {
        Ok(read) => {
            crate::taken();
            let value = read.authorization();
            let token = bytes.trim_ascii();
            assert_eq!(value.as_bytes(), [b"Bearer ", token].concat());
            assert!(value.is_sensitive() && (1..=8192).contains(&token.len()));
            let token = std::str::from_utf8(token).unwrap();
            assert_eq!(read.expose(), token);
            assert!(format!("{read:?}") == "BearerToken");
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
            match presented(&headers) {
                Ok(Presented::NativeBearer(bearer)) => assert_eq!(bearer.expose(), token),
                Ok(Presented::Jwt(read)) => {
                    assert_eq!(read.expose(), token);
                    kubernetes::jwt(&read);
                }
                Ok(_) => assert!(!token.starts_with("scnb_")),
                Err(callers::Unauthenticated::MalformedNativeBearer) => {
                    assert!(token.starts_with("scnb_") && NativeBearer::parse(token).is_err());
                }
                Err(error) => panic!("{error}"),
            }
        }
        Err(error) => {
            let secret = String::from_utf8_lossy(bytes).replace('*', SECRET);
            let told = BearerToken::parse(secret.as_bytes()).err();
            assert_quiet(&format!("{error} {error:?} {told:?}"), SECRET);
        }
    }
}

/// A file that is taken can be written and says the same then; what is refused is told without what
/// stands in it.
pub(crate) fn grants(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let now: DateTime<Utc> = "2030-01-01T00:00:00Z".parse().unwrap();
    let mut live = LiveGrants::new(Duration::from_secs(300));
    let standing = live.observe(Found::Text(text.clone()), Instant::now(), now);
    match Grants::parse(&text, now) {
        Ok(grants) => {
            crate::taken();
            let written = grants.to_json();
            // What is written takes more room than what came: the bound can refuse it.
            if written.len() <= 1024 * 1024 {
                let again = Grants::parse(&written, now).unwrap();
                assert!(grants.iter().eq(again.iter()));
                assert_eq!(again.to_json(), written);
            }
            let mut names: Vec<_> = grants.iter().map(callers::Grant::id).collect();
            names.sort_by(|one, other| one.as_str().cmp(other.as_str()));
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
            let active = grants.iter().filter(|grant| grant.is_active(now));
            let mut active: Vec<_> = active.map(|grant| grant.principal().to_string()).collect();
            active.sort();
            assert!(active.windows(2).all(|pair| pair[0] != pair[1]));
            assert!(standing.alarm.is_none() && standing.grants.is_some());
        }
        Err(errors) => {
            assert!(!errors.mistakes().is_empty());
            for mistake in errors.mistakes() {
                assert_quiet(mistake, SECRET);
                assert!(mistake.len() <= 256, "{} bytes are told", mistake.len());
            }
            let alarm = standing.alarm.as_deref().unwrap();
            assert!(standing.grants.is_none() && alarm.len() <= 2048);
            assert_quiet(alarm, SECRET);
        }
    }
}
