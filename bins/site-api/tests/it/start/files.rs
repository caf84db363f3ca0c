//! The files that its settings name: grants, certificate and key.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;
use test_support::TestCa;

use super::wrong_settings;
use crate::support::{Place, Request, plain};

#[tokio::test]
async fn every_mistake_of_the_grants_is_named() {
    let place = Place::prepare().await;
    place.issue(&["--scope", "ssh-access", "--site", "north-1"]);
    place.edit_grants(|grants| {
        grants[0]["principal"] = json!("commands@south-1");
        grants[0]["digest"] = json!("s3cret");
        grants[1]["environment"] = json!("slurm");
        grants[1].as_object_mut().unwrap().remove("expiresAt");
    });
    let (names, said) = wrong_settings(place.command()).await;
    assert_eq!(names, ["SITE_API_NATIVE_GRANTS_FILE"; 4], "{said}");
    for place in
        ["grants[0].principal", "grants[0].digest", "grants[1].environment", "grants[1].expiresAt"]
    {
        assert!(said.contains(place), "{place}: {said}");
    }
    assert!(!said.contains("s3cret"), "{said}");
}

#[tokio::test]
async fn two_active_grants_of_one_principal_are_refused() {
    let place = Place::prepare().await;
    place.edit_grants(|grants| grants[0]["revokedAt"] = json!("2026-01-01T00:00:00Z"));
    place.site.issue_bearer("commands", "bearer").unwrap();
    place.edit_grants(|grants| drop(grants[0].as_object_mut().unwrap().remove("revokedAt")));
    let (names, said) = wrong_settings(place.command()).await;
    assert_eq!(names, ["SITE_API_NATIVE_GRANTS_FILE"]);
    assert!(said.contains("commands@north-1 has an active grant already"), "{said}");
}

#[tokio::test]
async fn without_a_grants_file_it_serves_and_says_that_bearers_can_not_be_checked() {
    for named in [true, false] {
        let place = Place::prepare().await;
        let mut command = place.command();
        fs::rename(place.site.file("grants.json"), place.site.file("elsewhere")).unwrap();
        if !named {
            command.env_remove("SITE_API_NATIVE_GRANTS_FILE").env_remove("SITE_API_SITE_ID");
        }
        let api = place.start_by(command).await;
        let problem = api.send(&api.poll("after=0")).await.problem();
        assert_eq!((problem.code.as_str(), problem.retryable), ("bearers_unavailable", true));
        let no_token = api.poll("after=0").without("authorization");
        assert_eq!(api.send(&no_token).await.code(), "unauthenticated");
        assert_eq!(api.send(&Request::new("GET", "/healthz")).await.status, 200);
        // Where nobody wants native bearers, their absence is no alarm.
        let alarms = if named { vec!["native_grants"] } else { vec![] };
        assert_eq!(api.alarms().await, alarms);
        let said = plain(api.admin, &Request::new("GET", "/alarms")).await;
        assert_eq!(said.text().contains("grants.json: the file does not exist"), named);
    }
}

#[tokio::test]
async fn an_empty_list_of_grants_lets_nobody_in() {
    let place = Place::prepare().await;
    place.edit_grants(Vec::clear);
    let api = place.start().await;
    assert_eq!(api.send(&api.poll("after=0")).await.code(), "unauthenticated");
    assert_eq!(api.alarms().await, [""; 0]);
}

#[tokio::test]
async fn each_unusable_file_of_the_certificate_is_named_with_the_reason() {
    let place = Place::prepare().await;
    let file = |name: &str| place.site.file(name);
    let key = fs::read_to_string(file("tls/tls.key")).unwrap();
    // As a template leaves it that has lost the line ends.
    let flat = key.replace('\n', "");
    fs::write(file("flat.key"), &flat).unwrap();
    fs::write(file("endless.key"), flat.split_once("-----END").unwrap().0).unwrap();
    fs::write(file("cut.key"), &key[..key.len() / 2]).unwrap();
    fs::write(file("empty"), "").unwrap();
    let other = TestCa::new().issue(&["localhost"]);
    other.write_to(&file("other.crt"), &file("other.key")).unwrap();
    let both = ["SITE_API_TLS_CERT_FILE", "SITE_API_TLS_KEY_FILE"];
    for (certificate, key_file, names, reasons) in [
        ("none", "none", both.as_slice(), ["entity not found"; 2]),
        ("empty", "empty", &both, ["has no certificate", "has no key"]),
        ("tls", "tls", &both, ["is a directory", "is a directory"]),
        ("tls/tls.key", "tls/tls.crt", &both, ["has no certificate", "has no key"]),
        ("tls/tls.crt", "flat.key", &both[1..], ["not PEM"; 2]),
        ("tls/tls.crt", "endless.key", &both[1..], ["not PEM"; 2]),
        ("tls/tls.crt", "cut.key", &both[1..], ["not PEM"; 2]),
        ("tls/tls.crt", "other.key", &both[1..], ["can't be used"; 2]),
    ] {
        let mut command = place.command();
        command.env(both[0], file(certificate)).env(both[1], file(key_file));
        let (named, said) = wrong_settings(command).await;
        assert_eq!(named, names, "{certificate} {key_file}: {said}");
        assert!(reasons.iter().all(|reason| said.contains(reason)), "{key_file}: {said}");
        let secret = &key.lines().nth(1).unwrap()[..16];
        // Also not as the numbers that a list of bytes is printed as.
        let numbers = format!("{:?}", secret.as_bytes());
        assert!(!said.contains(secret) && !said.contains(numbers.trim_matches(['[', ']'])));
    }
}

#[tokio::test]
async fn files_that_may_not_be_read_are_named() {
    let place = Place::prepare().await;
    let grants = place.site.file("grants.json");
    fs::remove_file(&grants).unwrap();
    // Root may read everything, but no folder is a file.
    fs::create_dir(&grants).unwrap();
    fs::set_permissions(&grants, fs::Permissions::from_mode(0o000)).unwrap();
    let (names, said) = wrong_settings(place.command()).await;
    assert_eq!(names, ["SITE_API_NATIVE_GRANTS_FILE"], "{said}");
}
