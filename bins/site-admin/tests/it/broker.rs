//! `site-admin broker definitions`, as far as no broker is needed, and what `beto respond` refuses.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Admin, admin, files, full, mode, password};

pub(crate) const USERS: [&str; 5] =
    ["site_coordination", "resource_provisioning", "source_control", "join_tokens", "beto"];
pub(crate) const RESPONDER_URL: &str = "BETO_RESPONDER_BROKER_URL";
pub(crate) const RESPONDER_CA: &str = "BETO_RESPONDER_BROKER_CA_FILE";

pub(crate) fn definitions(folder: &Path, more: &[&str]) -> Admin {
    let folder = folder.display().to_string();
    let usual = ["broker", "definitions", "--directory", &folder];
    let place = ["--broker", "amqps://rabbitmq.example:5671"];
    admin(&[&usual[..], &place, more].concat())
}

pub(crate) fn url(folder: &Path, user: &str) -> String {
    fs::read_to_string(folder.join(format!("{user}.url"))).unwrap()
}

#[test]
fn each_user_gets_a_url_in_a_file_and_no_password_is_printed() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path().join("new/urls");
    let done = definitions(&folder, &[]).run();
    let mut names = USERS.map(|user| format!("{user}.url"));
    names.sort();
    assert_eq!(files(&folder), names);
    let printed: Value = serde_json::from_str(&done.out).unwrap();
    let mut passwords = BTreeSet::new();
    for user in USERS {
        assert_eq!(mode(&folder.join(format!("{user}.url"))), 0o600);
        let url = url(&folder, user);
        assert!(url.starts_with(&format!("amqps://{user}:")), "{url}");
        assert!(url.ends_with("@rabbitmq.example:5671"), "{url}");
        let password = password(&url).to_owned();
        assert!(password.len() >= 32, "{password}");
        assert!(!done.out.contains(&password) && !done.err.contains(&password), "{done:?}");
        assert!(done.err.contains(&format!("{user}: made")), "{done:?}");
        passwords.insert(password);
    }
    assert_eq!(passwords.len(), USERS.len());
    let named = printed["users"].as_array().unwrap().iter().map(|user| user["name"].as_str());
    assert_eq!(named.map(Option::unwrap).collect::<BTreeSet<_>>(), BTreeSet::from(USERS));

    // Again: the same users, other salts, and nothing is written.
    let before = USERS.map(|user| url(&folder, user));
    let done = definitions(&folder, &["--json"]).run();
    assert_eq!(done.out.lines().count(), 1);
    assert_eq!(done.err.matches("was there, keeps its password").count(), 5, "{done:?}");
    assert_eq!(USERS.map(|user| url(&folder, user)), before);
    let again: Value = serde_json::from_str(&done.ok()).unwrap();
    assert_eq!(again["permissions"], printed["permissions"]);
    assert_ne!(again["users"][0]["password_hash"], printed["users"][0]["password_hash"]);
}

#[test]
fn a_file_that_is_none_of_ours_is_named_and_nothing_is_made() {
    for (text, said) in [
        ("amqps://somebody:pa55word@h", "its user is not join_tokens"),
        ("amqps://join_tokens@h", "names no user or no password"),
        ("pa55word", "is no amqps:// URL"),
        ("", "is no amqps:// URL"),
    ] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("join_tokens.url"), text).unwrap();
        let done = definitions(folder.path(), &[]).run();
        done.refused(65, said);
        assert!(done.err.contains("join_tokens.url") && !done.err.contains("pa55word"), "{done:?}");
        assert_eq!(files(folder.path()), ["join_tokens.url"]);
    }
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("beto.url")).unwrap();
    definitions(folder.path(), &[]).run().refused(65, "beto.url");
    assert_eq!(files(folder.path()), ["beto.url"]);
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    definitions(&file, &[]).run().refused(73, "file");
}

#[test]
fn what_can_not_be_printed_is_printed_by_the_next_run() {
    let folder = TempDir::new().unwrap();
    let done = definitions(folder.path(), &[]).output(full()).run();
    assert_eq!(done.code, 74, "{done:?}");
    let before = USERS.map(|user| url(folder.path(), user));
    definitions(folder.path(), &[]).run().ok();
    assert_eq!(USERS.map(|user| url(folder.path(), user)), before);
}

#[test]
fn a_virtual_host_is_a_part_of_each_url_and_of_each_definition() {
    let folder = TempDir::new().unwrap();
    let printed = definitions(folder.path(), &["--vhost", "site/one"]).run().ok();
    for user in USERS {
        assert!(url(folder.path(), user).ends_with(":5671/site%2Fone"));
    }
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["vhosts"], serde_json::json!([{ "name": "site/one" }]));
    for kind in ["permissions", "topic_permissions", "exchanges", "queues", "bindings"] {
        let all = printed[kind].as_array().unwrap();
        assert!(!all.is_empty() && all.iter().all(|one| one["vhost"] == "site/one"), "{kind}");
    }
}

#[test]
fn a_wrong_place_or_host_is_refused() {
    let broker = |place: &str| {
        admin(&["broker", "definitions", "--directory", "d", "--broker", place]).run()
    };
    for place in [
        "rabbitmq",
        "https://h",
        "amqps://",
        "amqps://u:pa55word@h",
        "amqps://u@h",
        "amqps://h/v",
        "amqps://h?x=1",
        "amqps://h#x",
    ] {
        broker(place).refused(64, "without a user, a password or a path");
    }
    for vhost in ["", "a b", "..", "ä"] {
        let folder = TempDir::new().unwrap();
        definitions(folder.path(), &["--vhost", vhost]).run().refused(64, "a virtual host is");
        assert_eq!(files(folder.path()), [""; 0]);
    }
}

#[test]
fn a_responder_without_a_broker_or_a_policy_does_not_begin() {
    let folder = TempDir::new().unwrap();
    let policy = folder.path().join("policy.json");
    let path = policy.display().to_string();
    let respond = || admin(&["beto", "respond", "--policy", &path]);
    respond().run().refused(64, RESPONDER_URL);
    let wrong = respond().with(RESPONDER_URL, "http://beto:pa55word@h").run();
    wrong.refused(64, "is no amqps:// URL");
    assert!(!wrong.err.contains("pa55word"), "{wrong:?}");
    let url = "amqps://beto:pa55word@127.0.0.1:1";
    respond().with(RESPONDER_URL, url).run().refused(64, "needs a CA file");
    let missing = respond().with(RESPONDER_URL, url).with(RESPONDER_CA, &path).run();
    missing.refused(64, "policy.json");
    let plain = url.replace("amqps", "amqp");
    respond().with(RESPONDER_URL, &plain).run().refused(66, "policy.json");
    fs::write(&policy, r#"{"version": 2, "rules": [{}]}"#).unwrap();
    let done = respond().with(RESPONDER_URL, &plain).run();
    done.refused(65, "version: must be 1");
    assert!(done.err.contains("rules[0].member: is missing"), "{done:?}");
}
