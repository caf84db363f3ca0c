//! What `site-api` refuses to start with, and what it says then.

mod databases;
mod files;
mod site;

use std::{fs, process::Command};

use test_support::{Process, process::Exit};
use tokio::net::TcpListener;

use crate::support::{LONG, Place};

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
