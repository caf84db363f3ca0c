//! What it refuses to start with, and what it says then.

use std::process::Command;

use test_support::{Process, TestDatabase, config_map, manifest, process::Exit};

use crate::support::{DATABASE, LONG, Running, command};

/// How it ended, and all that it said.
async fn refusal(command: Command) -> (Exit, String) {
    let process = Process::start(command).unwrap();
    let exit = process.wait_exit(LONG).await.unwrap();
    let lines: Vec<_> = process.lines().into_iter().map(|line| line.text).collect();
    assert!(!lines.iter().any(|line| line.contains("\"ssh_access.started\"")), "{lines:#?}");
    (exit, lines.join("\n"))
}

async fn wrong_settings(command: Command) -> (Vec<String>, String) {
    let (exit, said) = refusal(command).await;
    assert_eq!(exit, Exit::Code(64), "{said}");
    let mistakes = said.split_once("the settings are wrong:\n").unwrap().1;
    let names = mistakes.lines().map(|line| line.split_once(": ").unwrap().0.to_owned());
    (names.collect(), said)
}

#[tokio::test]
async fn every_missing_setting_is_named_at_once() {
    let database = TestDatabase::create().await;
    let mut command = command(&database);
    command.env_remove(DATABASE).env_remove("SSH_ACCESS_SITE");
    let (names, _) = wrong_settings(command).await;
    assert_eq!(names, [DATABASE, "SSH_ACCESS_SITE"]);
}

#[tokio::test]
async fn every_wrong_setting_is_named_at_once_and_no_secret_with_it() {
    let database = TestDatabase::create().await;
    let mut command = command(&database);
    command
        .env("SSH_ACCESS_LOG", "ssh_access=loud")
        .env(DATABASE, "postgresql://someone:h1dden@localhost/d?sslmode=prefer")
        .env("SSH_ACCESS_SITE", "a site")
        .env("SSH_ACCESS_WINDOW_SECONDS", "59")
        .env("SSH_ACCESS_METRICS_LISTEN", "9465")
        .env("SSH_ACCESS_LEASE_SECONDS", "2")
        .env("SSH_ACCESS_EVENTS_RETENTION_DAYS", "0")
        .env("EVENTS_BROKER_URL", "https://relay:h1dden@broker")
        .env("EVENTS_BROKER_CA_FILE", "/nowhere");
    let (names, said) = wrong_settings(command).await;
    let all = [
        "SSH_ACCESS_LOG",
        DATABASE,
        "SSH_ACCESS_SITE",
        "SSH_ACCESS_WINDOW_SECONDS",
        "SSH_ACCESS_METRICS_LISTEN",
        "SSH_ACCESS_LEASE_SECONDS",
        "SSH_ACCESS_EVENTS_RETENTION_DAYS",
        "EVENTS_BROKER_URL",
        "EVENTS_BROKER_CA_FILE",
    ];
    assert_eq!(names, all);
    assert!(!said.contains("h1dden"), "{said}");
    assert!(said.contains("from 60 to 86400") && said.contains("from 3 to 300"), "{said}");
}

#[tokio::test]
async fn each_bound_of_a_setting_is_taken_and_what_is_beyond_it_is_not() {
    let database = TestDatabase::create().await;
    for (name, good, wrong) in [
        ("SSH_ACCESS_WINDOW_SECONDS", ["60", "86400"], ["59", "86401"]),
        ("SSH_ACCESS_LEASE_SECONDS", ["3", "300"], ["2", "301"]),
        ("SSH_ACCESS_EVENTS_RETENTION_DAYS", ["1", "36500"], ["0", "36501"]),
    ] {
        for value in good {
            let mut command = command(&database);
            command.env(name, value);
            Running::start(command).await;
        }
        for value in wrong {
            let mut command = command(&database);
            command.env(name, value);
            assert_eq!(wrong_settings(command).await.0, [name], "{value}");
        }
    }
}

/// One ConfigMap gives both names to both processes.
#[tokio::test]
async fn a_site_that_is_another_one_than_that_of_the_site_api_is_refused() {
    let database = TestDatabase::create().await;
    for other in ["south-1", "North-1", "north-10"] {
        let mut command = command(&database);
        command.env("SITE_API_SITE_ID", other);
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, ["SSH_ACCESS_SITE"], "{said}");
        assert!(said.contains(&format!("is north-1, but SITE_API_SITE_ID is {other}")), "{said}");
    }
    let mut command = command(&database);
    command.env("SITE_API_SITE_ID", "north-1");
    Running::start(command).await;
}

#[tokio::test]
async fn the_configmap_of_the_manifest_names_its_site() {
    let database = TestDatabase::create().await;
    let mut command = command(&database);
    command.env_remove("SSH_ACCESS_SITE");
    command.envs(config_map(&manifest("ssh-access-settings.yaml")));
    let running = Running::start(command).await;
    let lines = running.process.lines();
    let started = lines.iter().find(|line| line.text.contains("\"ssh_access.started\"")).unwrap();
    for part in ["\"site.id\":\"gpu-lab\"", "\"ssh_access.window_seconds\":600"] {
        assert!(started.text.contains(part), "{part}: {}", started.text);
    }
    assert!(!lines.iter().any(|line| line.text.contains("setting.unknown")), "{lines:?}");
}

#[tokio::test]
async fn a_role_with_too_many_rights_and_one_of_somebody_else_are_refused() {
    let database = TestDatabase::create().await;
    for (url, reason) in [
        (database.url("ssh_access_api"), "it is neither ssh_access_process nor a member of it"),
        (database.url("ssh_access_owner"), "it owns"),
        (database.superuser_url(), "it is a superuser"),
    ] {
        let mut command = command(&database);
        command.env(DATABASE, url);
        let (exit, said) = refusal(command).await;
        assert_eq!(exit, Exit::Code(70), "{said}");
        assert!(said.contains(reason), "{said}");
    }
}

#[tokio::test]
async fn a_schema_that_is_behind_is_refused() {
    let database = TestDatabase::create().await;
    let forget = "DELETE FROM ssh_access.__diesel_schema_migrations";
    database.superuser().await.batch_execute(forget).await.unwrap();
    let (exit, said) = refusal(command(&database)).await;
    assert_eq!(exit, Exit::Code(70), "{said}");
    assert!(said.contains("20261130090000"), "{said}");
}

#[tokio::test]
async fn an_address_that_is_taken_is_refused() {
    let database = TestDatabase::create().await;
    let first = Running::start(command(&database)).await;
    let mut command = command(&database);
    command.env("SSH_ACCESS_METRICS_LISTEN", first.admin.to_string());
    let (exit, said) = refusal(command).await;
    assert_eq!(exit, Exit::Code(69), "{said}");
    assert!(said.contains("SSH_ACCESS_METRICS_LISTEN"), "{said}");
}

#[tokio::test]
async fn a_variable_that_is_no_setting_is_told_and_ignored() {
    let database = TestDatabase::create().await;
    let mut command = command(&database);
    command.env("SSH_ACCESS_WINDOW", "600").env("SSH_ACCESS_SITE_API_URL", "https://x");
    command.env("SSH_ACCESS_SERVICE_HOST", "10.0.0.1");
    let running = Running::start(command).await;
    running.says("setting.unknown").await;
    let told: Vec<_> = running.process.lines().into_iter().map(|line| line.text).collect();
    let told = told.iter().filter(|line| line.contains("setting.unknown"));
    let told: Vec<_> = told.collect();
    assert!(told.len() == 1 && told[0].contains("SSH_ACCESS_WINDOW\""), "{told:?}");
}
