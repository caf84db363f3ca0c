//! Callers from Kubernetes: the form of their tokens, the maps of subjects, and what the API server
//! answers.

use callers::{
    Environment, Jwt, ServiceAccount, ServiceAccountToken, SubjectGrant, SubjectGrants, parsers,
    review::{Pod, ReviewError},
};
use http::StatusCode;
use serde_json::{Value, value::RawValue};
use service_kit::error_chain;

use crate::{SECRET, assert_quiet, with_secrets};

/// A token that a ServiceAccount can have.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.zqxj7k4w9v2mzqxj7k4w9v2m.c2lnbmF0dXJl";
const AUDIENCE: &str = "site-control";

/// A JWT has its form. A cluster can be asked about one that is not too long, which has an expiry and
/// an account that it says itself.
pub(crate) fn jwt(read: &Jwt) {
    assert!(is_of_their_form(read.expose()));
    assert_eq!(format!("{read:?}"), "Jwt");
    let Some(token) = ServiceAccountToken::of(read.clone()) else {
        assert!(read.expose().len() > 8192);
        return;
    };
    assert_eq!(token.expose(), read.expose());
    assert!(token.expose().len() <= 8192);
    assert_eq!(format!("{token:?}"), "ServiceAccountToken");
    says(&token);
}

/// What it says is what another reader finds.
fn says(read: &ServiceAccountToken) {
    if let Some(expiry) = read.expires_at()
        && let Some(claims) = claims(read)
    {
        assert_eq!(claims["exp"].as_i64(), Some(expiry.timestamp()));
    }
    if let Some(account) = read.claimed_account()
        && let Some(claims) = claims(read)
    {
        assert_eq!(claims["sub"], account.to_string());
    }
}

/// What a token says, where it says something.
fn claims(read: &ServiceAccountToken) -> Option<Value> {
    let claims = decoded(read.expose().split('.').nth(1).unwrap());
    whole(std::str::from_utf8(&claims).unwrap())
}

/// JSON in its whole. `None` where it holds, in a part that nobody asks for, what is JSON and no text
/// (half of a character that takes two escapes), or is too deep.
pub(crate) fn whole(text: &str) -> Option<Value> {
    assert!(serde_json::from_str::<&RawValue>(text).is_ok(), "{text:?} is no JSON");
    serde_json::from_str(text).ok()
}

/// Whether a token of any length has the form, by another reader.
pub(crate) fn is_of_their_form(token: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.chars().all(|c| digit(c).is_some());
    let parts: Vec<_> = token.split('.').collect();
    parts.len() == 3 && parts.into_iter().all(digits) && token.len() <= 16_384
}

/// base64url without padding, as bytes.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for one in text.chars() {
        bits = bits << 6 | digit(one).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap());
        }
    }
    bytes
}

fn digit(of: char) -> Option<u32> {
    let digits = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']);
    digits.zip(0..).find(|(known, _)| *known == of).map(|(_, digit)| digit)
}

/// The first line is the map of the Runtimes, the rest, where there is any, that of the Admissions.
pub(crate) fn subjects(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let (runtimes, admissions) = match text.split_once('\n') {
        Some((runtimes, admissions)) => (runtimes, Some(admissions)),
        None => (text.as_str(), None),
    };
    match SubjectGrants::parse(Some(runtimes), admissions) {
        Ok(grants) => {
            crate::taken();
            let read = |text| serde_json::from_str::<serde_json::Map<String, Value>>(text).unwrap();
            let (runtimes, admissions) = (read(runtimes), admissions.map(read).unwrap_or_default());
            assert_eq!(grants.iter().count(), runtimes.len() + admissions.len());
            assert_eq!(grants.len(), grants.iter().count());
            assert_eq!(grants.is_empty(), runtimes.is_empty() && admissions.is_empty());
            let all = runtimes.iter().map(|row| (row, SubjectGrant::Runtime as fn(_) -> _));
            let all = all.chain(admissions.iter().map(|row| (row, SubjectGrant::Admission as _)));
            for ((subject, environment), grant) in all {
                let account = ServiceAccount::parse(subject).unwrap();
                assert_eq!(account.to_string(), *subject);
                let environment = Environment::parse(environment.as_str().unwrap()).unwrap();
                assert_eq!(grants.of(&account), Some(grant(environment)));
            }
        }
        Err(errors) => {
            let mistakes = || errors.runtimes.iter().chain(&errors.admissions);
            assert!(mistakes().count() > 0);
            assert!(admissions.is_some() || errors.admissions.is_empty());
            for mistake in mistakes() {
                assert_quiet(mistake, SECRET);
                assert!(mistake.len() <= 400, "{} bytes are told", mistake.len());
                assert!(mistake.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
            }
        }
    }
}

/// The first line is the status, the rest is the body, in which `*` stands for the token that was
/// sent.
pub(crate) fn review(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, TOKEN) else { return };
    let (status, body) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(status) = StatusCode::from_bytes(status.as_bytes()) else { return };
    let verdict = parsers::verdict(status, body.as_bytes(), TOKEN, AUDIENCE);
    let read = || {
        assert!(status.is_success());
        let read = whole(body)?;
        assert_eq!(read["spec"]["token"], TOKEN, "it is about another");
        Some(read)
    };
    match verdict {
        Ok((account, uid, pod)) => {
            crate::taken();
            for text in [&uid, &pod.uid] {
                assert!((1..=128).contains(&text.len()));
                assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
            }
            assert!(pod.name.as_ref().is_none_or(|name| name.len() <= 253));
            if let Some(read) = read() {
                accepted(&read, &account, &uid, &pod);
            }
        }
        Err(error) => {
            match &error {
                ReviewError::Refused(_) => drop(read()),
                ReviewError::Trouble(_) => {}
                _ => panic!("{error:?}"),
            }
            let told = format!("{} {error:?}", error_chain(&error));
            assert_quiet(&told, TOKEN);
            assert!(told.len() <= 300, "{told}");
        }
    }
}

/// Every rule holds.
fn accepted(read: &Value, account: &ServiceAccount, uid: &str, pod: &Pod) {
    assert_eq!(read["kind"], "TokenReview");
    assert_eq!(read["apiVersion"], "authentication.k8s.io/v1");
    let status = &read["status"];
    assert_eq!(status["authenticated"], true);
    assert!(status["error"].as_str().unwrap_or_default().is_empty());
    assert!(status["audiences"].as_array().unwrap().contains(&AUDIENCE.into()));
    let user = &status["user"];
    assert_eq!(user["username"], account.to_string());
    assert_eq!(user["uid"], uid);
    let extra = |name| &user["extra"][format!("authentication.kubernetes.io/{name}")];
    assert_eq!(*extra("pod-uid"), Value::from(vec![pod.uid.as_str()]));
    if let Some(name) = &pod.name {
        assert_eq!(*extra("pod-name"), Value::from(vec![name.as_str()]));
    }
}
