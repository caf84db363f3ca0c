//! What `site-api` refuses to start with, and what it says then.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use serde_json::json;
use test_support::{Process, TestCa, process::Exit};
use tokio::net::TcpListener;

use crate::support::{LONG, Place, Request, plain};

const DATABASE: &str = "SITE_COORDINATION_DATABASE_URL";

/// How it ended, and all that it said.
pub(crate) async fn refusal(command: Command) -> (Exit, String) {
    let process = Process::start(command).unwrap();
    let exit = process.wait_exit(LONG).await.unwrap();
    let lines: Vec<_> = process.lines().into_iter().map(|line| line.text).collect();
    assert!(!lines.iter().any(|line| line.contains("\"site_api.listening\"")), "{lines:#?}");
    (exit, lines.join("\n"))
}

/// The settings that a refusal names, in its order.
pub(crate) async fn wrong_settings(command: Command) -> (Vec<String>, String) {
    let (exit, said) = refusal(command).await;
    assert_eq!(exit, Exit::Code(64), "{said}");
    let mistakes = said.split_once("the settings are wrong:\n").unwrap().1;
    let names = mistakes.lines().map(|line| line.split_once(": ").unwrap().0.to_owned());
    (names.collect(), said)
}

#[tokio::test]
async fn every_missing_setting_is_named_at_once() {
    let place = Place::prepare().await;
    let mut command = place.command();
    for name in ["SITE_API_TLS_CERT_FILE", "SITE_API_TLS_KEY_FILE", "SITE_API_SITE_ID", DATABASE] {
        command.env_remove(name);
    }
    let (names, said) = wrong_settings(command).await;
    let all = ["SITE_API_TLS_CERT_FILE", "SITE_API_TLS_KEY_FILE", "SITE_API_SITE_ID", DATABASE];
    assert_eq!(names, all);
    assert!(said.contains("a listener with native grants must know its Site"), "{said}");
}

#[tokio::test]
async fn every_wrong_setting_is_named_at_once_whatever_its_kind() {
    let place = Place::prepare().await;
    let grants = place.site.file("grants.json");
    fs::write(&grants, r#"{"version": 2, "grants": [], "more": 1}"#).unwrap();
    let mut command = place.command();
    command
        .env("SITE_API_LOG", "site_api=loud")
        .env("SITE_API_LISTEN", "8443")
        .env("SITE_API_METRICS_LISTEN", "localhost")
        .env("SITE_API_TLS_CERT_FILE", place.site.file("none.crt"))
        .env("SITE_API_TLS_KEY_FILE", place.site.file("tls/tls.crt"))
        .env("SITE_API_SITE_ID", "a site")
        .env(DATABASE, "postgresql://someone:h1dden@localhost/d?sslmode=prefer");
    let (names, said) = wrong_settings(command).await;
    let all = [
        "SITE_API_LOG",
        "SITE_API_LISTEN",
        "SITE_API_METRICS_LISTEN",
        "SITE_API_TLS_CERT_FILE",
        "SITE_API_TLS_KEY_FILE",
        "SITE_API_NATIVE_GRANTS_FILE",
        "SITE_API_NATIVE_GRANTS_FILE",
        "SITE_API_SITE_ID",
        DATABASE,
    ];
    assert_eq!(names, all, "{said}");
    assert!(said.contains("version: must be 1") && said.contains("more: is not a field"), "{said}");
    assert!(!said.contains("h1dden"), "{said}");
}

#[tokio::test]
async fn a_setting_in_both_of_its_places_or_empty_is_wrong() {
    let place = Place::prepare().await;
    let url = place.site.file("url");
    fs::write(&url, place.database.url("site_coordination_api")).unwrap();
    let mut command = place.command();
    command.env(format!("{DATABASE}_FILE"), &url).env("SITE_API_LISTEN", "");
    let (names, said) = wrong_settings(command).await;
    assert_eq!(names, ["SITE_API_LISTEN", DATABASE], "{said}");
}

#[tokio::test]
async fn the_databases_url_may_come_from_a_file() {
    let place = Place::prepare().await;
    let url = place.site.file("url");
    fs::write(&url, place.database.url("site_coordination_api") + "\n").unwrap();
    let mut command = place.command();
    command.env_remove(DATABASE).env(format!("{DATABASE}_FILE"), &url);
    let api = place.start_by(command).await;
    assert_eq!(api.send(&api.poll("after=0")).await.status, 200);
}

#[tokio::test]
async fn a_setting_that_nobody_knows_is_told_and_refuses_nothing() {
    let place = Place::prepare().await;
    let mut command = place.command();
    for name in ["SITE_API_LISTENS", "SITE_API_MAX_BODY", "SITE_API_NATIVE_GRANTS_FILE_FILE"] {
        command.env(name, "s3cret");
    }
    // Those of the agent, of another prefix, and what Kubernetes adds for a Service.
    for name in ["SITE_API_TOKEN_FILE", "SITE_COORDINATION_X", "SITE_API_PORT_8443_TCP_ADDR"] {
        command.env(name, "s3cret");
    }
    let api = place.start_by(command).await;
    let lines = api.process.lines();
    let lines = lines.iter().filter(|line| line.text.contains("\"setting.unknown\""));
    let named: Vec<_> = lines
        .map(|line| serde_json::from_str::<serde_json::Value>(&line.text).unwrap())
        .map(|event| event["setting.name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        named,
        ["SITE_API_LISTENS", "SITE_API_MAX_BODY", "SITE_API_NATIVE_GRANTS_FILE_FILE"]
    );
    assert!(!api.process.lines().iter().any(|line| line.text.contains("s3cret")));
}

#[tokio::test]
async fn every_limit_that_is_out_of_its_range_refuses_the_start() {
    let place = Place::prepare().await;
    let mut command = place.command();
    let limits = [
        "SITE_API_MAX_CONNECTIONS",
        "SITE_API_LONGEST_WAIT_SECONDS",
        "SITE_COORDINATION_DATABASE_CONNECTIONS",
    ];
    for name in limits {
        command.env(name, "70000");
    }
    let (names, said) = wrong_settings(command).await;
    assert_eq!(names, limits, "{said}");
    assert!(
        said.contains("SITE_API_LONGEST_WAIT_SECONDS: must be a number from 1 to 55"),
        "{said}"
    );
}

#[tokio::test]
async fn native_grants_without_a_site_are_refused() {
    let place = Place::prepare().await;
    let refused = async || {
        let mut command = place.command();
        command.env_remove("SITE_API_SITE_ID");
        wrong_settings(command).await.0
    };
    assert_eq!(refused().await, ["SITE_API_SITE_ID"]);
    // Also those that let nobody in, and those that can't be used.
    place.edit_grants(Vec::clear);
    assert_eq!(refused().await, ["SITE_API_SITE_ID"]);
    fs::write(place.site.file("grants.json"), "{").unwrap();
    assert_eq!(refused().await, ["SITE_API_NATIVE_GRANTS_FILE", "SITE_API_SITE_ID"]);
}

#[tokio::test]
async fn a_name_that_is_no_sites_is_refused() {
    let place = Place::prepare().await;
    let long = "a".repeat(65);
    for name in ["a site", "-a", ".a", "a/b", "caf\u{e9}", "a\n", "", &long] {
        let mut command = place.command();
        command.env("SITE_API_SITE_ID", name);
        assert_eq!(wrong_settings(command).await.0, ["SITE_API_SITE_ID"], "{name:?}");
        let mut command = place.command();
        command.env("SSH_ACCESS_SITE", name);
        command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
        assert_eq!(wrong_settings(command).await.0, ["SSH_ACCESS_SITE"], "{name:?}");
    }
}

#[tokio::test]
async fn a_site_of_ssh_access_that_is_another_one_is_refused() {
    let place = Place::prepare().await;
    for other in ["south-1", "North-1", "north-10"] {
        let mut command = place.command();
        command.env("SSH_ACCESS_SITE", other);
        command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, ["SSH_ACCESS_SITE"], "{said}");
        assert!(said.contains(&format!("is {other}, but SITE_API_SITE_ID is north-1")), "{said}");
    }
    let mut command = place.command();
    command.env("SSH_ACCESS_SITE", "north-1");
    command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
    place.start_by(command).await;
}

#[tokio::test]
async fn ssh_access_without_its_database_or_the_site_is_refused() {
    let place = Place::prepare().await;
    let mut command = place.command();
    command.env("SSH_ACCESS_SITE", "north-1").env("SSH_ACCESS_WINDOW_SECONDS", "59");
    let (names, said) = wrong_settings(command).await;
    assert_eq!(names, ["SSH_ACCESS_DATABASE_URL", "SSH_ACCESS_WINDOW_SECONDS"], "{said}");
    let mut command = place.command();
    command.env_remove("SITE_API_SITE_ID").env_remove("SITE_API_NATIVE_GRANTS_FILE");
    command.env("SSH_ACCESS_SITE", "north-1");
    command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
    assert_eq!(wrong_settings(command).await.0, ["SSH_ACCESS_SITE"]);
}

#[tokio::test]
async fn every_broken_rule_about_the_site_is_named_with_all_other_mistakes() {
    let place = Place::prepare().await;
    let mut command = place.command();
    command.env("SSH_ACCESS_SITE", "south-1").env("SITE_API_LISTEN", "here");
    let (names, said) = wrong_settings(command).await;
    let expected = ["SITE_API_LISTEN", "SSH_ACCESS_SITE", "SSH_ACCESS_DATABASE_URL"];
    assert_eq!(names, expected, "{said}");
}

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

#[tokio::test]
async fn a_credential_with_other_rights_than_its_own_is_refused() {
    let place = Place::prepare().await;
    for (url, reasons) in [
        (
            place.database.url("site_coordination_owner"),
            ["is neither site_coordination_api nor a member of it", "owns"],
        ),
        (place.database.superuser_url(), ["is a superuser", "may create"]),
        (
            place.database.url("site_coordination_producer"),
            ["site_coordination_producer must not serve", "neither site_coordination_api nor"],
        ),
    ] {
        let mut command = place.command();
        command.env(DATABASE, &url);
        let (exit, said) = refusal(command).await;
        assert_eq!(exit, Exit::Code(70), "{said}");
        assert!(said.contains(&format!("{DATABASE}: ")), "{said}");
        assert!(reasons.iter().all(|reason| said.contains(reason)), "{said}");
        assert!(!said.contains(password(&url)), "{said}");
    }
}

#[tokio::test]
async fn a_database_that_refuses_is_not_waited_for() {
    let place = Place::prepare().await;
    let url = place.database.url("site_coordination_api");
    let wrong = url.replace(password(&url), "wr0ng-password");
    for url in [wrong, url.replace(place.database.name(), "no_such_database")] {
        let mut command = place.command();
        command.env(DATABASE, &url);
        let (exit, said) = refusal(command).await;
        assert_eq!(exit, Exit::Code(70), "{said}");
        assert!(said.contains("the database refused the connection"), "{said}");
        assert!(!said.contains(password(&url)), "{said}");
    }
}

#[tokio::test]
async fn a_schema_that_this_build_does_not_know_is_refused() {
    let place = Place::prepare().await;
    let sql = place.database.superuser().await;
    for (change, reason) in [
        ("DELETE FROM site_coordination.__diesel_schema_migrations", "lacks the migrations"),
        ("DROP SCHEMA site_coordination CASCADE", "can't be read"),
    ] {
        sql.batch_execute(change).await.unwrap();
        let (exit, said) = refusal(place.command()).await;
        assert_eq!(exit, Exit::Code(70), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(said.contains("run `site-admin database migrate`"), "{said}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let place = Place::prepare().await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for name in ["SITE_API_LISTEN", "SITE_API_METRICS_LISTEN"] {
        let mut command = place.command();
        command.env(name, &address);
        let (exit, said) = refusal(command).await;
        assert_eq!(exit, Exit::Code(69), "{said}");
        assert!(said.contains(&format!("{name}: {address}: Address already in use")), "{said}");
    }
}

#[tokio::test]
async fn without_a_setting_it_listens_on_port_8443() {
    let place = Place::prepare().await;
    // Ours, or somebody else's already: it is taken either way, and the refusal tells the address.
    let _taken = TcpListener::bind("0.0.0.0:8443").await;
    let mut command = place.command();
    command.env_remove("SITE_API_LISTEN");
    let (exit, said) = refusal(command).await;
    assert_eq!(exit, Exit::Code(69), "{said}");
    assert!(said.contains("SITE_API_LISTEN: 0.0.0.0:8443: Address already in use"), "{said}");
}

fn password(url: &str) -> &str {
    url.split_once('@').unwrap().0.rsplit_once(':').unwrap().1
}
