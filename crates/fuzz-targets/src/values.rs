//! Names, numbers and digests, which have one spelling each, and hints.

use callers::{
    BearerId, Environment as CallerEnvironment, Scope, ServiceAccount, SiteId as CallerSite,
};
use http::{HeaderValue, Uri};
use site_coordination::{
    CommandId, CommandKind, Environment, Generation, Invalid, Outcome, ProducerKey, RunId, Seq,
    SessionId, SiteId, VoidNote,
};
use site_protocol::{Digest, paths};

/// What is taken prints back, is no longer than its rule says, and is the same for all who read it.
pub(crate) fn names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let text = text.strip_suffix('\n').unwrap_or(text);
    let printed = |taken: Result<&str, Invalid>, longest: usize| {
        if let Ok(name) = taken {
            crate::taken();
            assert!(name == text && (1..=longest).contains(&name.len()), "{text:?}");
            assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "{text:?}");
        }
    };
    printed(SiteId::parse(text).as_ref().map(SiteId::as_str).map_err(|error| *error), 64);
    printed(CommandKind::parse(text).as_ref().map(CommandKind::as_str).map_err(|e| *e), 64);
    printed(ProducerKey::parse(text).as_ref().map(ProducerKey::as_str).map_err(|e| *e), 200);
    printed(RunId::parse(text).as_ref().map(RunId::as_str).map_err(|error| *error), 128);
    printed(Environment::parse(text).map(Environment::as_str), 5);
    printed(Outcome::parse(text).map(Outcome::as_str), 9);
    let caller = CallerSite::parse(text);
    assert_eq!(
        caller.as_ref().ok().map(CallerSite::as_str),
        SiteId::parse(text).ok().as_ref().map(SiteId::as_str)
    );
    let caller = CallerEnvironment::parse(text).map(CallerEnvironment::as_str);
    assert_eq!(caller.ok(), Environment::parse(text).ok().map(Environment::as_str));
    assert!(
        Scope::parse(text).is_ok_and(|scope| scope.as_str() == text) || Scope::parse(text).is_err()
    );
    if let Ok(id) = BearerId::parse(text) {
        assert_eq!((id.as_str(), text.len()), (text, 16));
    }
    if let Ok(account) = ServiceAccount::parse(text) {
        let parts: Vec<_> = text.split(':').collect();
        assert_eq!(parts, ["system", "serviceaccount", account.namespace(), account.name()]);
        assert_eq!(account.to_string(), text);
        assert!(account.namespace().len() <= 63 && account.name().len() <= 253);
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()));
    }
    if let Ok(note) = VoidNote::parse(text) {
        assert_eq!(note.as_str(), text.trim());
        assert_eq!(
            VoidNote::parse(note.as_str()).as_ref().map(VoidNote::as_str),
            Ok(note.as_str())
        );
    }
    parts_of_a_request(text);
    numbers(text);
}

/// What stands in a path or a header stands there as it is.
fn parts_of_a_request(text: &str) {
    if let Ok(id) = CommandId::parse(text) {
        assert_eq!((id.as_str(), text.len()), (text, 36));
        let path = paths::command_result(text);
        assert_eq!(path.parse::<Uri>().unwrap().path(), path);
    }
    if let Ok(id) = SessionId::parse(text) {
        assert_eq!(id.as_str(), text);
        assert_eq!(HeaderValue::from_str(text).unwrap().to_str().unwrap(), text);
    }
    if let Ok(digest) = text.parse::<Digest>() {
        assert_eq!(digest.to_string(), text);
        let path = paths::command_output("cmd_1", &digest);
        assert_eq!(path.parse::<Uri>().unwrap().path(), path);
        let ours = site_coordination::Digest::from_bytes(*digest.as_bytes());
        assert_eq!(ours.to_string(), text);
        let json: Digest = serde_json::from_str(&format!("\"{text}\"")).unwrap();
        assert_eq!(json, digest);
    }
}

/// A number is taken as exactly the one text that the client, whose numbers have no sign, prints.
fn numbers(text: &str) {
    let number: Option<u64> = text.parse().ok().filter(|number: &u64| number.to_string() == text);
    let number = number.and_then(|number| i64::try_from(number).ok());
    assert_eq!(Seq::parse(text).ok().map(Seq::get), number);
    assert_eq!(Generation::parse(text).ok().map(Generation::get), number.filter(|n| *n > 0));
}

/// A hint that is taken prints back; whatever else PostgreSQL brings is no hint.
pub(crate) fn hint(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let parsed = site_coordination::parsers::hint(text);
    if let Some((environment, done, printed)) = &parsed {
        crate::taken();
        assert_eq!(printed, text);
        assert_eq!(text.ends_with(" done"), *done);
        assert!(text.starts_with(environment.as_str()));
    }
    let known = ["k8s", "slurm", "k8s done", "slurm done"].contains(&text);
    assert_eq!(parsed.is_some(), known);
}
