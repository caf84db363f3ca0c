//! A Site with execution authority: who writes its Runs and bindings, and settings to ask about them.

use std::{fs, process::Command};

use serde_json::{Value, json};

use super::{Api, Place, Request, SITE};

/// The Run of most tests.
pub(crate) const RUN: &str = "run-7";
/// Its member.
pub(crate) const MEMBER: &str = "member-1";
/// Its Project.
pub(crate) const PROJECT: &str = "project-1";
/// The password of each caller of Beto.
pub(crate) const PASSWORD: &str = "hunter2";

/// The document of a Run that may execute for long.
pub(crate) fn run_document(run: &str) -> Value {
    json!({
        "runId": run,
        "projectId": PROJECT,
        "memberId": MEMBER,
        "site": SITE,
        "environment": "slurm",
        "deadline": "2999-01-01T00:00:00Z",
        "repository": {
            "instance": "gitlab", "projectId": 4711, "path": "research/climate", "ref": "main",
            "commit": "0123456789abcdef0123456789abcdef01234567"
        },
        "material": { "image": "train:3" }
    })
}

/// The same with another value somewhere.
pub(crate) fn changed(mut document: Value, pointer: &str, value: impl Into<Value>) -> Value {
    *document.pointer_mut(pointer).unwrap() = value.into();
    document
}

impl Place {
    /// Adds what execution authority needs, with a broker that is not there.
    pub(crate) fn authority(&self, command: &mut Command) {
        let broker = format!("amqp://resource_provisioning:{PASSWORD}@127.0.0.1:1");
        command
            .env("SITE_API_EXECUTION_AUTHORITY_ENABLED", "true")
            .env("EXECUTION_CORE_DATABASE_URL", self.database.url("execution_core_api"))
            .env(
                "RESOURCE_PROVISIONING_DATABASE_URL",
                self.database.url("resource_provisioning_api"),
            )
            .env("RESOURCE_PROVISIONING_BROKER_URL", broker);
    }

    /// Starts `site-api` with execution authority, and nobody to ask.
    pub(crate) async fn start_with_authority(self) -> Api {
        let mut command = self.command();
        self.authority(&mut command);
        self.start_by(command).await
    }

    /// Runs `site-admin` with the credentials of the control plane, and returns what it printed.
    pub(crate) fn control(&self, arguments: &[&str]) -> String {
        let mut command = self.site.admin_command();
        command
            .env("EXECUTION_CORE_WRITER_DATABASE_URL", self.database.url("execution_core_writer"))
            .env(
                "RESOURCE_PROVISIONING_WRITER_DATABASE_URL",
                self.database.url("resource_provisioning_writer"),
            );
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Accepts a Run.
    pub(crate) fn accept(&self, document: &str) {
        let file = self.site.file("run.json");
        fs::write(&file, document).unwrap();
        self.control(&["runs", "accept", &file.display().to_string()]);
    }

    /// Accepts a Run that may execute, and submits its first Attempt.
    pub(crate) fn accept_and_submit(&self, run: &str) {
        self.accept(&run_document(run).to_string());
        self.submit(run, 1);
    }

    /// Submits an Attempt.
    pub(crate) fn submit(&self, run: &str, attempt: u32) {
        self.control(&["runs", "submit", run, "--attempt", &attempt.to_string()]);
    }

    /// Retains a binding of the member of most tests at the Site, and returns its id.
    pub(crate) fn retain(&self) -> String {
        self.retain_at(SITE, MEMBER)
    }

    /// Retains a binding of a member at a Site.
    pub(crate) fn retain_at(&self, site: &str, member: &str) -> String {
        let who = ["bindings", "retain", "--site", site, "--member", member];
        let account =
            ["--unix-user", "ada", "--uid", "20001", "--gid", "100", "--account", "climate"];
        let printed = self.control(&[&who[..], &account].concat());
        let (id, _) = printed.split_once(": retained").unwrap();
        id.to_owned()
    }

    /// Releases a binding.
    pub(crate) fn release(&self, binding: &str) {
        self.control(&["bindings", "release", binding]);
    }
}

impl Api {
    /// A running `site-api` with execution authority, whose stream has `commands` commands.
    pub(crate) async fn with_authority(commands: usize) -> (Self, Vec<String>) {
        let place = Place::prepare().await;
        let ids = place.enqueue(&vec!["{}"; commands]);
        (place.start_with_authority().await, ids)
    }

    /// A Runtime that reads a Run.
    pub(crate) fn read_run(&self, run: &str) -> Request {
        Request::new("GET", &format!("/v1/site/executions/{run}")).bearer(&self.bearer())
    }

    /// A Runtime that asks whether an Attempt may execute.
    pub(crate) fn may_execute(&self, run: &str, attempt: u32) -> Request {
        let body = json!({ "attempt": attempt, "action": "execute" }).to_string();
        Request::new("POST", &format!("/v1/site/executions/{run}/authorisations"))
            .bearer(&self.bearer())
            .header("content-type", "application/json")
            .body(body.as_bytes())
    }
}
