//! The real agent beside the real listener.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use test_support::{Process, eventually, process::bin};

use super::{add, public_key, remove, served};
use crate::support::{Api, LONG};

/// The real agent beside the real listener.
struct Agent {
    process: Process,
    folder: tempfile::TempDir,
}

impl Agent {
    fn start(api: &Api, bearer: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        fs::create_dir(&keys).unwrap();
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("bearer"), bearer).unwrap();
        let mut command = Command::new(bin("site-agent"));
        command
            .args(["ssh-keys", "--folder"])
            .arg(&keys)
            .arg("--state")
            .arg(folder.path().join("state"))
            .env("SSH_ACCESS_SITE_API_URL", format!("https://{}", api.wire.address()))
            .env("SITE_API_CA_FILE", api.place.site.file("tls/ca.crt"))
            .env("SITE_API_TOKEN_FILE", folder.path().join("bearer"));
        Self { process: Process::start(command).unwrap(), folder }
    }

    fn file(&self, user: &str) -> Option<String> {
        fs::read_to_string(self.folder.path().join("keys").join(user)).ok()
    }

    async fn wait_for_file(&self, user: &str, holds: &str) {
        let there = async || self.file(user).is_some_and(|text| text.contains(holds)).then_some(());
        eventually(LONG, &format!("the file of {user}"), there).await;
    }
}

#[tokio::test]
async fn a_key_reaches_the_file_of_the_real_agent_and_leaves_it_again() {
    let (api, bearer) = served().await;
    let first = add(&api.place, "member-1", "alice", 0).await;
    let agent = Agent::start(&api, &bearer);
    agent.wait_for_file("alice", first.as_str()).await;
    let attested = |line: &str| line.contains("ssh_keys.attested");
    agent.process.wait_for_line("that the set matches", LONG, attested).await.unwrap();
    let second = add(&api.place, "member-2", "bob", 1).await;
    agent.wait_for_file("bob", &format!("{} {}", public_key(1), second.as_str())).await;
    remove(&api.place, &first).await;
    let gone = async || agent.file("alice").is_none().then_some(());
    eventually(LONG, "the removed key to go", gone).await;
    let acknowledged = async || {
        let sql = api.sql().await;
        let row = sql.query_one("SELECT count(*) FROM ssh_access.site_ack", &[]).await.unwrap();
        (row.get::<_, i64>(0) == 1).then_some(())
    };
    eventually(LONG, "the acknowledgement to be stored", acknowledged).await;
}
