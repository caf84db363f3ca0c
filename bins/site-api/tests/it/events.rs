//! The settings of the events' broker. What a real one gets is in `rabbitmq`.

use std::{fs, process::Command};

use test_support::{Process, TestCa, process::Exit};

use crate::support::{LONG, Place};

const URL: &str = "EVENTS_BROKER_URL";
const CA: &str = "EVENTS_BROKER_CA_FILE";

/// The lines about mistakes; all that it said holds no password.
async fn mistakes(command: Command) -> Vec<String> {
    let process = Process::start(command).unwrap();
    let exit = process.wait_exit(LONG).await.unwrap();
    let said: Vec<_> = process.lines().into_iter().map(|line| line.text).collect();
    let said = said.join("\n");
    assert_eq!(exit, Exit::Code(64), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let mistakes = said.split_once("the settings are wrong:\n").unwrap().1;
    mistakes.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn each_wrong_combination_of_broker_settings_is_named() {
    let place = Place::prepare().await;
    let ca = place.site.file("broker-ca.pem");
    TestCa::new().write_to(&ca).unwrap();
    let empty = place.site.file("empty.pem");
    fs::write(&empty, "").unwrap();
    let (ca, empty) = (ca.display().to_string(), empty.display().to_string());
    let tls = "amqps://relay:hunter2@broker";
    let plain = "amqp://relay:hunter2@broker";
    let cases: [(Option<&str>, Option<&str>, &[&str]); 7] = [
        (Some("https://relay:hunter2@broker"), Some(&ca), &["EVENTS_BROKER_URL: is no amqps://"]),
        (Some("amqps://broker"), Some(&ca), &["EVENTS_BROKER_URL: names no user"]),
        (Some(tls), None, &["EVENTS_BROKER_CA_FILE: an amqps:// URL needs a CA file"]),
        (Some(plain), Some(&ca), &["EVENTS_BROKER_CA_FILE: a CA file is given, but an amqp://"]),
        (Some(tls), Some(&empty), &["EVENTS_BROKER_CA_FILE: "]),
        (None, Some(&ca), &["EVENTS_BROKER_CA_FILE: is set, but EVENTS_BROKER_URL is not"]),
        (Some(""), Some("/nowhere"), &["EVENTS_BROKER_URL: is empty", "EVENTS_BROKER_CA_FILE: "]),
    ];
    for (url, file, expected) in cases {
        let mut command = place.command();
        url.map(|url| command.env(URL, url));
        file.map(|file| command.env(CA, file));
        let named = mistakes(command).await;
        assert_eq!(named.len(), expected.len(), "{url:?} {file:?}: {named:#?}");
        for (mistake, expected) in named.iter().zip(expected) {
            assert!(mistake.starts_with(expected), "{url:?} {file:?}: {mistake}");
        }
    }
}
