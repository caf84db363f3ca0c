//! `--json`: one object a line, with the fields that the README names.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    ADMINISTRATOR, API, Admin, BINDINGS_WRITER, KEYS_REGISTRY, OWNER, PRODUCER, RUNS_WRITER,
    RUNTIME, Stream, admin,
};

/// The fields in the README's row of a command, those of inner objects as well.
fn documented(command: &str) -> BTreeSet<String> {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"));
    let readme = readme.unwrap();
    let (_, table) = readme.split_once("| Command | Fields of each line |\n").unwrap();
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    let named = |row: &&&str| {
        let words: Vec<&str> = quoted(row.split('|').nth(1).unwrap());
        let area = words.first().and_then(|first| first.split_once(' ')).map(|(area, _)| area);
        words.iter().any(|word| {
            *word == command || area.is_some_and(|area| format!("{area} {word}") == command)
        })
    };
    let row = rows.iter().find(named).unwrap_or_else(|| panic!("no row for {command}"));
    let cell = row.split('|').nth(2).unwrap();
    let mut fields: BTreeSet<String> = quoted(cell).into_iter().map(str::to_owned).collect();
    for other in ["list", "add"] {
        if fields.remove(other) {
            let (area, _) = command.split_once(' ').unwrap();
            fields.extend(documented(&format!("{area} {other}")));
        }
    }
    // The words that a field may hold.
    let words = ["active", "revoked", "expired", "unknown", "admitted", "refused", "waiting"];
    let outcomes = ["succeeded", "failed", "rejected", "operator"];
    let states = ["accepted", "cancelled", "submitted", "final", "removed"];
    let words = [&words[..], &outcomes, &states].concat();
    fields.retain(|field| !words.contains(&field.as_str()));
    fields
}

fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The names of all fields of an object, and of those within it that are no body.
fn fields(object: &Value, found: &mut BTreeSet<String>) {
    for (name, value) in object.as_object().unwrap() {
        found.insert(name.clone());
        if name == "body" || name == "material" {
            continue;
        }
        // A list has objects of one kind, or none.
        let inner = if value.is_array() { value.get(0) } else { Some(value) };
        inner.into_iter().filter(|inner| inner.is_object()).for_each(|inner| fields(inner, found));
    }
}

/// Runs a command with `--json` and compares. `absent` are fields that another way of running it
/// has.
#[track_caller]
fn compare(command: &str, run: Admin, absent: &[&str]) -> Vec<Value> {
    let done = run.run();
    assert_eq!(done.code, 0, "{command}: {done:?}");
    let lines: Vec<Value> =
        done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines.is_empty(), "{command}");
    let mut found = BTreeSet::new();
    lines.iter().for_each(|line| fields(line, &mut found));
    let mut documented = documented(command);
    documented.retain(|field| !absent.contains(&field.as_str()));
    assert_eq!(found, documented, "{command}");
    let camel = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    assert!(found.iter().all(camel), "{found:?}");
    lines
}

#[tokio::test]
async fn commands_and_streams_have_the_documented_fields() {
    let stream = Stream::create().await;
    let run = |command: &str, more: &[&str]| {
        stream.commands(command, &[more, &["--json"]].concat()).input(b"{\n  \"a\":\n1}\n")
    };
    let one = ["--key", "k1", "--kind", "test", "--body", "-"];
    compare("commands enqueue", run("enqueue", &one), &[]);
    run("enqueue", &["--key", "k2", "--kind", "test", "--body", "-"]).run().ok();
    compare("commands cancel", run("cancel", &["--key", "k2"]), &[]);
    stream.finish("succeeded").await;
    compare("commands void", run("void", &["--key", "k2", "--note", "gone"]), &["expired"]);
    compare("commands list", run("list", &[]), &[]);
    // One that has a result was not voided.
    let voided = ["reason", "note", "voidedAt"];
    let shown = compare("commands show", run("show", &["--key", "k1"]), &voided);
    assert_eq!(shown[0]["body"], serde_json::json!({"a": 1}));
    compare("commands wait", run("wait", &["--key", "k1"]), &voided);
    run("enqueue", &["--key", "k3", "--kind", "test", "--body", "-"]).run().ok();
    compare("status", admin(&["status", "--json"]).with(PRODUCER, &stream.url()), &[]);
    let keeper = stream.database.url("site_coordination_keeper");
    let prune = admin(&["commands", "prune", "--json"]).with(crate::support::KEEPER, &keeper);
    compare("commands prune", prune, &[]);
}

#[tokio::test]
async fn the_database_commands_have_the_documented_fields() {
    let stream = Stream::create().await;
    let database = &stream.database;
    compare("database roles", admin(&["database", "roles", "--json"]), &[]);
    let provision = ["database", "provision", "--directory", "/nowhere", "--json"];
    let provision = admin(&provision).with(ADMINISTRATOR, &database.superuser_url());
    compare("database provision", provision, &[]);
    let owner = database.url("site_coordination_owner");
    compare("database migrate", admin(&["database", "migrate", "--json"]).with(OWNER, &owner), &[]);
    let api = database.url("site_coordination_api");
    compare("database check", admin(&["database", "check", "--json"]).with(API, &api), &[]);
}

#[tokio::test]
async fn runs_and_bindings_have_the_documented_fields() {
    let stream = Stream::create().await;
    let url = |role: &str| stream.database.url(role);
    let run = |more: &[&str]| {
        let run = admin(&[&["runs"], more, &["--json"]].concat());
        run.with(RUNS_WRITER, &url("execution_core_writer")).input(crate::runs::DOCUMENT.as_bytes())
    };
    compare("runs accept", run(&["accept", "-"]), &[]);
    compare("runs submit", run(&["submit", "run-7", "--attempt", "1"]), &[]);
    compare("runs cancel", run(&["cancel", "run-7"]), &[]);
    compare("runs show", run(&["show", "run-7"]), &[]);
    let bindings = |more: &[&str]| {
        let bindings = admin(&[&["bindings"], more, &["--json"]].concat());
        bindings.with(BINDINGS_WRITER, &url("resource_provisioning_writer"))
    };
    let retain = [&["retain"], &crate::bindings::BINDING[..]].concat();
    compare("bindings retain", bindings(&retain), &[]);
    compare("bindings list", bindings(&["list", "--site", "north-1"]), &[]);
    compare("bindings release", bindings(&["release", "1"]), &[]);
}

#[tokio::test]
async fn keys_and_accounts_have_the_documented_fields() {
    let stream = Stream::create().await;
    let run = |more: &[&str], input: &str| {
        let run = admin(&[more, &["--json"]].concat());
        let run = run.with(KEYS_REGISTRY, &stream.database.url("ssh_access_registry"));
        run.input(input.as_bytes())
    };
    let add = ["keys", "add", "--member", "m", "-"];
    let added = compare("keys add", run(&add, crate::keys::SHORT_RSA), &[]);
    compare("keys add", run(&add, crate::keys::KEY), &["warning"]);
    let line = format!("{{\"memberId\":\"n\",\"publicKey\":\"{}\"}}", crate::keys::KEY);
    compare("keys import", run(&["keys", "import", "-"], &line), &["warning"]);
    compare("keys list", run(&["keys", "list", "--member", "m"], ""), &[]);
    let id = added[0]["keyId"].as_str().unwrap();
    compare("keys remove", run(&["keys", "remove", id], ""), &[]);
    let user = ["--site", "north-1", "--unix-user", "ada"];
    let account = [&["accounts", "add", "--member", "m"], &user[..]].concat();
    compare("accounts add", run(&account, ""), &[]);
    compare("accounts list", run(&["accounts", "list", "--site", "north-1"], ""), &[]);
    compare("accounts remove", run(&[&["accounts", "remove"], &user[..]].concat(), ""), &[]);
}

#[test]
fn credentials_and_certificates_have_the_documented_fields() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (grants, bearer, tls) = (file("grants.json"), file("bearer"), file("tls"));
    let run = |command: &str, more: &[&str]| {
        admin(&[&["credentials", command, "--grants", &grants, "--json"], more].concat())
    };
    let kept = [&RUNTIME[..], &["--out", &bearer]].concat();
    compare("credentials issue", run("issue", &kept), &["bearer"]);
    let agent = ["--scope", "ssh-access", "--site", "north-1"];
    compare("credentials issue", run("issue", &agent), &["bearerFile"]);
    compare("credentials list", run("list", &[]), &[]);
    compare("credentials verify", run("verify", &["--bearer", &bearer]), &["reason"]);
    compare("credentials revoke", run("revoke", &agent), &[]);
    let issue = ["tls", "issue", "--directory", &tls, "--name", "localhost", "--json"];
    compare("tls issue", admin(&issue), &[]);
    compare("tls show", admin(&["tls", "show", "--directory", &tls, "--json"]), &[]);
}
