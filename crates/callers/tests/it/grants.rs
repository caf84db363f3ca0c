use callers::{Environment, Grants, NativeBearer, Refused, Scope};
use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{agent_row, at, bearer, file, now, row, runtime};

/// The mistakes of a file, which must have some.
fn mistakes(text: &str) -> Vec<String> {
    Grants::parse(text, now()).unwrap_err().mistakes().to_vec()
}

/// The mistakes of a file with one good row, after `change`.
fn mistakes_after(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut row = row(&bearer());
    change(&mut row);
    mistakes(&file(&[row]))
}

#[test]
fn a_bearer_is_known_by_its_grant() {
    let (runtime_bearer, agent_bearer) = (bearer(), bearer());
    let text = file(&[row(&runtime_bearer), agent_row(&agent_bearer)]);
    let grants = Grants::parse(&text, now()).unwrap();

    let grant = grants.authenticate(&runtime_bearer, now()).unwrap();
    assert_eq!(grant.principal(), &runtime("hpc-1"));
    assert_eq!(grant.principal().environment(), Some(Environment::Slurm));
    assert_eq!(grant.expires_at(), at("2030-02-01T00:00:00Z"));

    let grant = grants.authenticate(&agent_bearer, now()).unwrap();
    assert_eq!(grant.principal().scope(), Scope::SshAccess);
    assert_eq!(grant.principal().site().as_str(), "hpc-1");
}

#[test]
fn a_bearer_with_an_unknown_id_is_refused() {
    let grants = Grants::parse(&file(&[row(&bearer())]), now()).unwrap();
    assert_eq!(grants.authenticate(&bearer(), now()).unwrap_err(), Refused::Unknown);
}

#[test]
fn a_bearer_with_the_secret_of_another_is_refused() {
    let (mine, other) = (bearer(), bearer());
    let grants = Grants::parse(&file(&[row(&mine)]), now()).unwrap();
    let secret = other.expose().split('.').nth(1).unwrap();
    let forged = NativeBearer::parse(&format!("scnb_{}.{secret}", mine.id())).unwrap();
    assert_eq!(grants.authenticate(&forged, now()).unwrap_err(), Refused::WrongSecret);
}

#[test]
fn an_unknown_id_is_not_let_in_by_a_digest_of_zeros() {
    let mut zeros = row(&bearer());
    zeros["digest"] = "00".repeat(32).into();
    let grants = Grants::parse(&file(&[zeros]), now()).unwrap();
    assert_eq!(grants.authenticate(&bearer(), now()).unwrap_err(), Refused::Unknown);
}

#[test]
fn a_grant_ends_with_the_instant_of_its_expiry() {
    let bearer = bearer();
    let grants = Grants::parse(&file(&[row(&bearer)]), now()).unwrap();
    let end = at("2030-02-01T00:00:00Z");
    assert!(grants.authenticate(&bearer, end - TimeDelta::nanoseconds(1)).is_ok());
    assert_eq!(grants.authenticate(&bearer, end).unwrap_err(), Refused::Expired);
}

#[test]
fn a_clock_that_is_behind_the_issuer_does_not_refuse() {
    let bearer = bearer();
    let before = at("2029-12-31T23:59:00Z");
    let grants = Grants::parse(&file(&[row(&bearer)]), before).unwrap();
    assert!(grants.authenticate(&bearer, before).is_ok());
}

#[test]
fn a_revoked_grant_is_refused_whatever_the_time_says() {
    for revoked_at in ["2030-01-02T00:00:00Z", "2031-01-01T00:00:00Z"] {
        let bearer = bearer();
        let mut row = row(&bearer);
        row["revokedAt"] = revoked_at.into();
        let grants = Grants::parse(&file(&[row]), now()).unwrap();
        assert_eq!(grants.authenticate(&bearer, now()).unwrap_err(), Refused::Revoked);
    }
}

#[test]
fn a_file_without_grants_lets_nobody_in() {
    let grants = Grants::parse(&file(&[]), now()).unwrap();
    assert!(grants.is_empty());
    assert_eq!(grants.authenticate(&bearer(), now()).unwrap_err(), Refused::Unknown);
}

#[test]
fn the_written_file_is_read_back() {
    let mut revoked = row(&bearer());
    revoked["revokedAt"] = "2030-01-02T03:04:05.678Z".into();
    let text = file(&[revoked, row(&bearer()), agent_row(&bearer())]);
    let read = Grants::parse(&text, now()).unwrap();
    let again = Grants::parse(&read.to_json(), now()).unwrap();
    assert!(read.iter().eq(again.iter()));
    let (before, after): (Value, Value) =
        (serde_json::from_str(&text).unwrap(), serde_json::from_str(&read.to_json()).unwrap());
    assert_eq!(before, after);
}

#[test]
fn two_active_grants_of_one_principal_are_refused() {
    assert_eq!(
        mistakes(&file(&[row(&bearer()), agent_row(&bearer()), row(&bearer())])),
        ["grants[2]: commands@hpc-1 has an active grant already, grants[0]"]
    );
    let mut other_environment = row(&bearer());
    other_environment["environment"] = "k8s".into();
    assert_eq!(mistakes(&file(&[row(&bearer()), other_environment])).len(), 1);
}

#[test]
fn an_expired_or_revoked_grant_may_stand_beside_an_active_one() {
    let (mut expired, mut revoked) = (row(&bearer()), row(&bearer()));
    expired["expiresAt"] = now().to_rfc3339().into();
    revoked["revokedAt"] = "2030-01-02T00:00:00Z".into();
    let text = file(&[expired, row(&bearer()), revoked]);
    assert!(Grants::parse(&text, now()).is_ok());
}

#[test]
fn an_id_stands_once() {
    let bearer = bearer();
    let text = file(&[row(&bearer), agent_row(&bearer)]);
    assert_eq!(mistakes(&text), [format!("grants[1].id: {} is there more than once", bearer.id())]);
}

#[test]
fn a_principal_must_be_its_scope_at_its_site() {
    for principal in ["commands@hpc-2", "ssh-access@hpc-1", "commands", "", "commands@hpc-1@hpc-1"]
    {
        assert_eq!(
            mistakes_after(|row| row["principal"] = principal.into()),
            ["grants[0].principal: must be the scope, @ and the site"],
            "{principal:?}"
        );
    }
}

#[test]
fn a_runtime_needs_an_environment() {
    assert_eq!(
        mistakes_after(|row| drop(row.as_object_mut().unwrap().remove("environment"))),
        ["grants[0].environment: is missing, as the scope is commands"]
    );
}

#[test]
fn an_ssh_agent_has_no_environment() {
    let mut row = agent_row(&bearer());
    row["environment"] = "slurm".into();
    assert_eq!(
        mistakes(&file(&[row])),
        ["grants[0].environment: must be absent, as the scope is ssh-access"]
    );
}

#[test]
fn an_expiry_must_follow_the_issue() {
    for expires_at in ["2030-01-01T00:00:00Z", "2029-12-31T00:00:00Z"] {
        assert_eq!(
            mistakes_after(|row| row["expiresAt"] = expires_at.into()),
            ["grants[0].expiresAt: must be later than issuedAt"]
        );
    }
}

#[test]
fn a_digest_has_one_spelling() {
    let digest = hex::encode(bearer().digest());
    for other in [digest.to_uppercase(), digest[2..].to_owned(), format!("{digest}00")] {
        assert_eq!(
            mistakes_after(|row| row["digest"] = other.into()),
            ["grants[0].digest: must be 64 lower-case hexadecimal characters"]
        );
    }
}

#[test]
fn every_wrong_field_of_every_grant_is_named_with_its_place() {
    let wrong = json!({
        "id": "ABC", "principal": 7, "scope": "all", "site": "a b", "environment": null,
        "digest": "zz", "issuedAt": "yesterday", "expiresAt": 1, "revokedAt": "", "note": "",
    });
    let text = json!({ "version": 2, "grants": [wrong, {}, 7], "more": 1 }).to_string();
    let mistakes = mistakes(&text);
    for place in [
        "version",
        "more",
        "grants[0].id",
        "grants[0].principal",
        "grants[0].scope",
        "grants[0].site",
        "grants[0].environment",
        "grants[0].digest",
        "grants[0].issuedAt",
        "grants[0].expiresAt",
        "grants[0].revokedAt",
        "grants[0].note",
        "grants[1].id",
        "grants[1].principal",
        "grants[1].scope",
        "grants[1].site",
        "grants[1].digest",
        "grants[1].issuedAt",
        "grants[1].expiresAt",
        "grants[2]",
    ] {
        let count = mistakes.iter().filter(|m| m.starts_with(&format!("{place}:"))).count();
        assert_eq!(count, 1, "{place} in {mistakes:#?}");
    }
    assert_eq!(mistakes.len(), 20, "{mistakes:#?}");
}

#[test]
fn a_repeated_field_is_a_mistake() {
    let text = file(&[row(&bearer())]).replacen(
        r#""id""#,
        r#""revokedAt":"2030-01-02T00:00:00Z","revokedAt":"2030-01-02T00:00:00Z","id""#,
        1,
    );
    assert_eq!(mistakes(&text), ["grants[0].revokedAt: is there more than once"]);
    let text = file(&[]).replacen('{', r#"{"version":1,"#, 1);
    assert_eq!(mistakes(&text), ["version: is there more than once"]);
}

#[test]
fn what_is_no_object_is_one_mistake() {
    for text in ["", "null", "[]", "7", "\"x\"", "{", "{}x", "\u{feff}{}"] {
        assert_eq!(mistakes(text), ["the file: must be a JSON object"], "{text:?}");
    }
}

#[test]
fn a_bearer_that_was_put_into_the_file_is_not_repeated() {
    let bearer = bearer();
    for field in ["id", "principal", "scope", "site", "environment", "digest", "issuedAt"] {
        let mistakes = mistakes_after(|row| row[field] = bearer.expose().into());
        assert!(!mistakes.join(" ").contains(bearer.expose()), "{mistakes:?}");
    }
    let secret = bearer.expose().split('.').nth(1).unwrap();
    for name in [bearer.expose(), secret, &"ab".repeat(32)] {
        let mistakes = mistakes_after(|row| row[name] = 1.into());
        assert_eq!(mistakes, ["grants[0].a field: is not known here"]);
    }
    let mistakes = mistakes(&json!({ "version": 1, "grants": [bearer.expose()] }).to_string());
    assert!(!mistakes.join(" ").contains(bearer.expose()), "{mistakes:?}");
}

/// With an offset, a text of RFC 3339 can mean a year that none can be written for.
#[test]
fn a_time_that_could_not_be_written_again_is_refused() {
    for time in ["9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01"] {
        let said = ["grants[0].revokedAt: must be a time in RFC 3339"];
        assert_eq!(mistakes_after(|row| row["revokedAt"] = time.into()), said);
    }
    for time in ["9999-12-31T23:59:59+00:01", "0000-01-01T00:00:00-00:01"] {
        let mut row = row(&bearer());
        row["revokedAt"] = time.into();
        let grants = Grants::parse(&file(&[row]), now()).unwrap();
        Grants::parse(&grants.to_json(), now()).unwrap();
    }
}

#[test]
fn a_file_without_measure_is_refused() {
    let text = file(&[]) + &" ".repeat(1024 * 1024);
    assert_eq!(mistakes(&text), ["the file: has more than 1048576 bytes"]);
}

proptest! {
    #[test]
    fn any_text_is_refused_or_read_without_a_panic(text in any::<String>()) {
        let _ = Grants::parse(&text, now());
    }

    #[test]
    fn a_damaged_file_never_panics(at in 0_usize..600, with in any::<char>()) {
        let mut text: Vec<char> = file(&[row(&bearer()), agent_row(&bearer())]).chars().collect();
        let at = at % text.len();
        text[at] = with;
        let _ = Grants::parse(&text.into_iter().collect::<String>(), now());
    }

    #[test]
    fn any_json_in_place_of_a_field_never_panics(
        field in "version|grants|id|environment|expiresAt", value in "[\\[\\]{}\",:0-9a-z]{0,20}"
    ) {
        let text = file(&[row(&bearer())]);
        let start = text.find(&format!("\"{field}\":")).unwrap() + field.len() + 3;
        let _ = Grants::parse(&format!("{}{value}{}", &text[..start], &text[start..]), now());
    }
}
