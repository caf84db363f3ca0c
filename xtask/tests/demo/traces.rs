//! What a run leaves behind: processes, found by a variable that they inherit, and temporary files.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command, time::Duration};

use tempfile::TempDir;
use test_support::{Random, eventually};

const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// Handlers have it too: it is none of the names that an agent hides from them.
const MARK: &str = "TRACES_OF_TEST";

pub(crate) struct Traces {
    mark: String,
    temporary: TempDir,
}

impl Traces {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        // PostgreSQL's own user has to get through.
        fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self { mark: format!("{MARK}={}", Random::of_this_test().number()), temporary }
    }

    pub(crate) fn mark(&self, command: &mut Command) {
        let (name, value) = self.mark.split_once('=').unwrap();
        command.env(name, value).env("TMPDIR", self.temporary.path());
    }

    /// A process that is on its way out (PostgreSQL's, when its parent is gone) may take a moment.
    pub(crate) async fn assert_none_left(&self) {
        let mut left = Vec::new();
        eventually(ENDED_WITHIN, "the end of every process", async || {
            let processes = self.processes();
            if processes != left {
                left.clone_from(&processes);
                eprintln!("still running: {processes:#?}");
            }
            processes.is_empty().then_some(())
        })
        .await;
        let files: Vec<PathBuf> = fs::read_dir(self.temporary.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(files.is_empty(), "left: {files:#?}");
    }

    /// The command lines of the processes that inherited the mark.
    fn processes(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            // A process that ends while it is looked at is not one that is left.
            let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
            if environment.split(|byte| *byte == 0).any(|pair| pair == self.mark.as_bytes()) {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push(String::from_utf8_lossy(&line).replace('\0', " "));
            }
        }
        found
    }
}
