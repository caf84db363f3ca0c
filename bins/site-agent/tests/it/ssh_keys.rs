//! `site-agent ssh-keys` as a process, beside a feed that can fail in any way, with real files.

mod feed;
mod files;
mod full;
mod kills;
mod leases;
mod obstacles;
mod places;
mod settings;
mod stopping;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use chrono::{DateTime, Utc};
use ssh_keys::{AuthorizedLine, MANAGED_MARK};
use test_support::{Peer, Process, Received, Reply, TestCa};

pub(crate) use feed::{Feed, key_id, public_key};

/// A folder with everything that an SSH agent needs.
pub(crate) struct SshAgent {
    folder: tempfile::TempDir,
    origin: String,
    keys: PathBuf,
}

/// An agent beside its feed.
async fn agent() -> (SshAgent, Feed) {
    let feed = Feed::new();
    let served = feed.clone();
    (beside(move |request| served.answer(request)).await, feed)
}

/// An agent beside a Site API that answers so.
async fn beside(answer: impl FnMut(&Received) -> Reply + Send + 'static) -> SshAgent {
    let ca = TestCa::new();
    let peer = Peer::start(&ca, answer).await;
    SshAgent::new(&ca, peer.origin())
}

impl SshAgent {
    pub(crate) fn new(ca: &TestCa, origin: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        ca.write_to(&folder.path().join("ca.pem")).unwrap();
        fs::write(folder.path().join("token"), "scnb_id.the-secret\n").unwrap();
        let keys = folder.path().join("keys");
        fs::create_dir(&keys).unwrap();
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, origin: origin.to_owned(), keys }
    }

    /// What lies beside the agent, such as `state` and `keys`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A user's file.
    pub(crate) fn file(&self, user: &str) -> PathBuf {
        self.keys.join(user)
    }

    pub(crate) fn command(&self) -> Command {
        self.command_for(&self.keys, &self.path("state"))
    }

    /// The command line with other folders.
    pub(crate) fn command_for(&self, folder: &Path, state: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_site-agent"));
        command
            .arg("ssh-keys")
            .args([Path::new("--folder"), folder])
            .args([Path::new("--state"), state])
            .env("SSH_ACCESS_SITE_API_URL", &self.origin)
            .env("SITE_API_CA_FILE", self.path("ca.pem"))
            .env("SITE_API_TOKEN_FILE", self.path("token"));
        command
    }

    pub(crate) fn start(&self) -> Process {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, arguments: &[&str]) -> Process {
        let mut command = self.command();
        command.args(arguments);
        Process::start(command).unwrap()
    }

    /// The lines of a user's file for sshd; none where there is no file.
    pub(crate) fn lines(&self, user: &str) -> Vec<AuthorizedLine> {
        let Ok(text) = fs::read_to_string(self.file(user)) else { return Vec::new() };
        let (mark, rest) = text.split_once('\n').unwrap();
        assert_eq!(mark, MANAGED_MARK, "{user}");
        let lines = rest.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| AuthorizedLine::parse(line).unwrap()).collect()
    }

    /// The ids of a user's keys.
    pub(crate) fn ids(&self, user: &str) -> Vec<String> {
        self.lines(user).iter().map(|line| line.id().as_str().to_owned()).collect()
    }

    /// Until when a user's keys are good.
    pub(crate) fn until(&self, user: &str) -> Vec<DateTime<Utc>> {
        self.lines(user).iter().map(AuthorizedLine::until).collect()
    }

    /// Users and keys' ids that the files hold.
    pub(crate) fn in_files(&self) -> Vec<(String, String)> {
        let named = |user: String| {
            self.ids(&user).into_iter().map(move |id| (user.clone(), id)).collect::<Vec<_>>()
        };
        self.users().into_iter().flat_map(named).collect()
    }

    /// Users with a file.
    pub(crate) fn users(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| !name.starts_with('.')).collect()
    }

    /// Every name in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.keys).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Waits for a line of the log with this message.
async fn wait_for_message(agent: &Process, message: &str) -> serde_json::Value {
    crate::agent::wait_for_event(agent, "message", message).await
}

/// The messages of the log, as often as they are there.
fn messages(agent: &Process) -> Vec<String> {
    let events = agent.lines().into_iter().map(|line| line.text);
    let events = events.filter_map(|line| serde_json::from_str::<serde_json::Value>(&line).ok());
    events.filter_map(|event| event["message"].as_str().map(str::to_owned)).collect()
}
