//! An agent under test: its files, its handler, its process.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use test_support::{Peer, Process, Received, Reply, TestCa, eventually, process::Exit};

use crate::LONG;

/// A folder with everything that an agent needs.
pub(crate) struct Agent {
    folder: tempfile::TempDir,
    origin: String,
}

/// An agent beside a Site API that answers so.
pub(crate) async fn agent(
    script: &str,
    answer: impl FnMut(&Received) -> Reply + Send + 'static,
) -> (Agent, Peer) {
    let ca = TestCa::new();
    let peer = Peer::start(&ca, answer).await;
    (Agent::new(&ca, peer.origin(), script), peer)
}

impl Agent {
    /// An agent whose handler is a shell script. In it, `$DIR` is the test's folder, and the
    /// command's `seq` is in `$SEQ`, its try in `$TRY`; it answers for itself.
    pub(crate) fn new(ca: &TestCa, origin: &str, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        ca.write_to(&folder.path().join("ca.pem")).unwrap();
        std::fs::write(folder.path().join("token"), "scnb_id.the-secret\n").unwrap();
        let script = format!(
            "INPUT=$(cat)\n\
             [ -n \"$INPUT\" ] || exit 1\n\
             SEQ=$(printf %s \"$INPUT\" | sed 's/.*\"seq\":\\([0-9]*\\).*/\\1/')\n\
             TRY=$(printf %s \"$INPUT\" | sed 's/.*\"try\":\\([0-9]*\\).*/\\1/')\n{script}\n"
        );
        std::fs::write(folder.path().join("handler.sh"), script).unwrap();
        Self { folder, origin: origin.to_owned() }
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command line, to be changed by the test.
    pub(crate) fn command(&self) -> Command {
        self.command_for(Path::new("/bin/sh"))
    }

    /// The command line with another program for the handler's script.
    pub(crate) fn command_for(&self, program: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_site-agent"));
        command
            .arg("runtime")
            .args([Path::new("--state"), &self.path("state")])
            .args([Path::new("--handler"), program, &self.path("handler.sh")])
            .env("SITE_API_URL", &self.origin)
            .env("SITE_API_CA_FILE", self.path("ca.pem"))
            .env("SITE_API_TOKEN_FILE", self.path("token"))
            .env("DIR", self.folder.path());
        command
    }

    pub(crate) fn start(&self) -> Process {
        Process::start(self.command()).unwrap()
    }

    /// Starts it with more arguments.
    pub(crate) fn start_with(&self, arguments: &[&str]) -> Process {
        let mut command = self.command();
        command.args(arguments);
        Process::start(command).unwrap()
    }

    /// Lines that the handler has written into `$DIR/<name>`.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the handler has written a line into `$DIR/<name>`.
    pub(crate) async fn wait_for_file(&self, name: &str) {
        let what = format!("the handler to write {name}");
        eventually(LONG, &what, async || (!self.lines(name).is_empty()).then_some(())).await;
    }
}

/// Waits for an event of the agent's log with this message and field.
pub(crate) async fn wait_for_event(agent: &Process, field: &str, value: &str) -> Value {
    let event = |line: &str| serde_json::from_str::<Value>(line).ok();
    let matches = |line: &str| event(line).is_some_and(|event| event[field] == value);
    let line = agent.wait_for_line(&format!("{field}={value}"), LONG, matches).await.unwrap();
    event(&line).unwrap()
}

/// Waits until an agent has the receipt of a command.
pub(crate) async fn wait_for_receipt(process: &Process, seq: u64) {
    let answered = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap_or_default();
        event["message"] == "command.answered" && event["command.seq"] == seq
    };
    process.wait_for_line("the last receipt", LONG, answered).await.unwrap();
}

/// Waits for the agent's end and gives its exit code; none when a signal ended it.
pub(crate) async fn exit_code(agent: &Process) -> Option<i32> {
    match agent.wait_exit(LONG).await.unwrap() {
        Exit::Code(code) => Some(code),
        Exit::Signal(_) => None,
    }
}
