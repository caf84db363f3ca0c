//! `site-admin runs`: Runs and their Attempts.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::{TestDatabase, bin};

use crate::support::{Admin, BINDINGS_WRITER, Done, RUNS_WRITER, admin};

/// A document with everything in it.
pub(crate) const DOCUMENT: &str = r#"{
  "runId": "run-7",
  "projectId": "project-1",
  "memberId": "member-1",
  "site": "north-1",
  "environment": "slurm",
  "deadline": "2999-01-01T00:00:00Z",
  "repository": {
    "instance": "gitlab", "projectId": 4711, "path": "research/climate", "ref": "main",
    "commit": "0123456789abcdef0123456789abcdef01234567"
  },
  "material": {"image":  "train:3",
    "weight": 1.50}
}"#;

struct Place {
    database: TestDatabase,
}

impl Place {
    async fn create() -> Self {
        Self { database: TestDatabase::create().await }
    }

    fn runs(&self, arguments: &[&str]) -> Admin {
        let run = admin(&[&["runs"], arguments].concat());
        run.with(RUNS_WRITER, &self.database.url("execution_core_writer"))
    }

    fn accept(&self, document: &str) -> Done {
        self.runs(&["accept", "-"]).input(document.as_bytes()).run()
    }

    async fn count(&self) -> i64 {
        let count = "SELECT count(*) FROM execution_core.run";
        self.database.superuser().await.query_one(count, &[]).await.unwrap().get(0)
    }
}

/// The document with other fields; `null` takes one away.
fn changed(changes: &[(&str, Value)]) -> String {
    let mut document: Value = serde_json::from_str(DOCUMENT).unwrap();
    for (pointer, value) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let object = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        if value.is_null() {
            object.remove(name);
        } else {
            object.insert(name.to_owned(), value.clone());
        }
    }
    document.to_string()
}

#[tokio::test]
async fn a_run_is_accepted_submitted_cancelled_and_shown() {
    let place = Place::create().await;
    let said = place.accept(DOCUMENT).ok();
    assert!(said.starts_with("run-7: accepted at ") && said.ends_with(", new\n"), "{said}");
    assert_eq!(place.accept(DOCUMENT).ok(), said.replace("new", "known"));
    let submit = |number: &str| place.runs(&["submit", "run-7", "--attempt", number]).run();
    submit("2").refused(65, "the Run has no Attempt yet, so the next one is 1");
    let said = submit("1").ok();
    assert!(said.starts_with("run-7: Attempt 1 submitted at ") && said.ends_with(", new\n"));
    assert_eq!(submit("1").ok(), said.replace("new", "known"));
    submit("3").refused(65, "the Run's newest Attempt is 1, so the next one is 2");

    let shown = place.runs(&["show", "run-7"]).run().ok();
    let (head, material) = shown.split_once("\nmaterial\n").unwrap();
    assert_eq!(material, "{\"image\":  \"train:3\",\n    \"weight\": 1.50}\n");
    for part in [
        "run         run-7\n",
        "project     project-1\n",
        "member      member-1\n",
        "place       north-1 slurm\n",
        "deadline    2999-01-01T00:00:00.000Z\n",
        "repository  research/climate, 4711 at gitlab\n",
        "commit      0123456789abcdef0123456789abcdef01234567 of main\n",
        "attempt 1   submitted ",
    ] {
        assert!(head.contains(part), "{part:?} is not in {shown}");
    }

    let said = place.runs(&["cancel", "run-7"]).run().ok();
    assert!(said.starts_with("run-7: cancelled, at "), "{said}");
    let again = place.runs(&["cancel", "run-7"]).run().ok();
    assert_eq!(again, said.replace("cancelled,", "cancelled already,"));
    submit("2").refused(65, "the Run was cancelled");
    assert!(place.runs(&["show", "run-7"]).run().ok().contains("cancelled   "));
    let accepted = place.accept(DOCUMENT).ok();
    assert!(accepted.ends_with(", known\n"), "{accepted}");
}

#[tokio::test]
async fn the_commands_of_the_page_accept_its_run_and_retain_its_binding() {
    let place = Place::create().await;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/OPERATIONS.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## Runs and bindings by hand\n").unwrap();
    let block = |kind: &str| {
        let (_, block) = section.split_once(&format!("```{kind}\n")).unwrap();
        block.split_once("```").unwrap().0.to_owned()
    };
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("run.json"), block("json")).unwrap();
    let programs = bin("site-admin");
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &block("sh")]).current_dir(folder.path());
    shell.env("PATH", format!("{}:/usr/bin:/bin", programs.parent().unwrap().display()));
    shell.env(RUNS_WRITER, place.database.url("execution_core_writer"));
    shell.env(BINDINGS_WRITER, place.database.url("resource_provisioning_writer"));
    let done = shell.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(said.contains("attempt 1   submitted") && said.contains("1: retained"), "{said}");
}

#[tokio::test]
async fn what_is_not_there_is_told() {
    let place = Place::create().await;
    for arguments in [&["show", "r"][..], &["cancel", "r"], &["submit", "r", "--attempt", "1"]] {
        place.runs(arguments).run().refused(66, "there is no such Run");
    }
    place.runs(&["accept", "/no/such/file"]).run().refused(66, "/no/such/file");
}

#[tokio::test]
async fn a_document_may_come_from_a_file_and_its_material_may_be_large() {
    let place = Place::create().await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("run.json");
    let large = changed(&[("/material", json!("x".repeat(1_048_574)))]);
    fs::write(&file, large).unwrap();
    let file = file.display().to_string();
    place.runs(&["accept", &file]).run().ok();
    let shown = place.runs(&["show", "run-7", "--json"]).run().ok();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["material"].as_str().unwrap().len(), 1_048_574);
    let larger = changed(&[("/material", json!("x".repeat(1_048_575)))]);
    place.accept(&larger).refused(65, "material: the material is at most 1 MiB");
}

#[tokio::test]
async fn another_run_of_a_known_id_is_refused() {
    let place = Place::create().await;
    place.accept(DOCUMENT).ok();
    for change in [
        ("/site", json!("north-2")),
        ("/deadline", json!("2999-01-01T00:00:01Z")),
        ("/repository/ref", json!("other")),
        ("/material", json!({"image": "train:3", "weight": 1.5})),
    ] {
        place.accept(&changed(&[change])).refused(65, "the id run-7 stands for another Run");
    }
    assert_eq!(place.count().await, 1);
}

/// A change that makes a field of the document wrong, and what is said of it.
fn wrong_fields() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("/runId", json!("a/b"), "runId: a Run's id is"),
        ("/projectId", json!(""), "projectId: a Project's id is"),
        ("/memberId", json!("a b"), "memberId: a member's id is"),
        ("/site", json!(7), "site: must be a text"),
        ("/environment", json!("cloud"), "environment: an environment is k8s or slurm"),
        ("/deadline", json!("tomorrow"), "deadline: a deadline is a time in RFC 3339"),
        ("/repository/instance", json!("-"), "repository.instance: an instance is"),
        ("/repository/projectId", json!("4711"), "repository.projectId: a project's number is"),
        ("/repository/path", json!("climate"), "repository.path: a path is a group and a project"),
        ("/repository/ref", json!("a..b"), "repository.ref: a ref is"),
        ("/repository/commit", json!("main"), "repository.commit: a commit is"),
        ("/repository/more", json!(1), "repository.more: is not a known field"),
        ("/state", json!("accepted"), "state: is not a known field"),
    ]
}

#[tokio::test]
async fn every_wrong_field_is_named_at_once_and_nothing_is_accepted() {
    let place = Place::create().await;
    let wrong = wrong_fields();
    for (pointer, value, said) in wrong.clone() {
        let done = place.accept(&changed(&[(pointer, value)]));
        done.refused(65, said);
        assert_eq!(done.err.lines().count(), 2, "{done:?}");
    }
    let all: Vec<_> = wrong.iter().map(|(pointer, value, _)| (*pointer, value.clone())).collect();
    let done = place.accept(&changed(&all));
    for (.., said) in &wrong {
        done.refused(65, said);
    }
    assert_eq!(done.err.lines().count(), wrong.len() + 1, "{done:?}");
    // Each field must be there.
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let mut fields: Vec<String> =
        document.as_object().unwrap().keys().map(|name| format!("/{name}")).collect();
    let repository = document["repository"].as_object().unwrap().keys();
    fields.extend(repository.map(|name| format!("/repository/{name}")));
    assert_eq!(fields.len(), 13);
    for field in fields {
        let name = field[1..].replace('/', ".");
        place
            .accept(&changed(&[(&field, Value::Null)]))
            .refused(65, &format!("{name}: is missing"));
    }
    assert_eq!(place.count().await, 0);
}

#[tokio::test]
async fn what_is_no_document_is_refused_and_not_repeated() {
    let place = Place::create().await;
    for (text, said) in [
        ("", "the body is not JSON"),
        ("the-secret", "the body is not JSON"),
        ("[\"the-secret\"]", "the body is not a JSON object"),
        ("{\"runId\": \"the-secret\", \"runId\": \"r\"}", "runId: is there more than once"),
        ("{\"the-secret\\u001b[31m\": 1}", "a field: is not a known field"),
        ("{\"repository\": \"the-secret\"}", "repository: must be an object"),
        ("{\"material\": the-secret}", "the body is not JSON"),
        ("{\"runId\": [\"the-secret\"]}", "runId: must be a text"),
        ("{\"deadline\": \"the-secret\"}", "deadline: a deadline is"),
    ] {
        let done = place.accept(text);
        done.refused(65, said);
        assert!(!done.err.contains("the-secret") && !done.err.contains('\u{1b}'), "{done:?}");
    }
    assert_eq!(place.count().await, 0);
}

#[tokio::test]
async fn runs_are_touched_with_the_writers_credential_and_no_other() {
    let place = Place::create().await;
    let commands = [
        &["runs", "accept", "-"][..],
        &["runs", "show", "r"],
        &["runs", "cancel", "r"],
        &["runs", "submit", "r", "--attempt", "1"],
    ];
    for (url, reason) in [
        (place.database.url("execution_core_api"), "neither execution_core_writer nor"),
        (place.database.url("resource_provisioning_writer"), "neither execution_core_writer nor"),
        (place.database.url("execution_core_owner"), "owns"),
        (place.database.superuser_url(), "is a superuser"),
    ] {
        for arguments in commands {
            let run = admin(arguments).with(RUNS_WRITER, &url).input(DOCUMENT.as_bytes());
            run.run().refused(70, reason);
        }
    }
    for arguments in commands {
        admin(arguments).run().refused(64, RUNS_WRITER);
    }
    assert_eq!(place.count().await, 0);
}
