//! `site-admin keys` and `site-admin accounts`, as an administrator runs them.

use std::{io, process::Command, time::Duration};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;
use test_support::{
    Process, bin,
    openssh::SshKey,
    postgres::Cluster,
    process::{Exit, Stream, WaitError},
};
use tokio::time::{Instant, sleep};

use super::DATABASE;

/// How long a command may take that has a database.
const RUNS_WITHIN: Duration = Duration::from_secs(60);
/// How long a database may be away until a command is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Adds and removes keys and accounts. Everything is tried again until it is acknowledged: each of the
/// commands may be repeated.
#[derive(Clone)]
pub(crate) struct KeyAdmin {
    url: String,
}

/// Why something could not be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    #[error("starting site-admin")]
    Start(#[from] io::Error),
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error("`site-admin {arguments}` failed ({exit}):\n{said}")]
    Refused { arguments: String, exit: Exit, said: String },
    #[error("`site-admin {0}` printed no JSON object with what was asked for")]
    Answer(String),
}

impl KeyAdmin {
    /// With the registry's credential for the cluster's database.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        Self { url: cluster.access().role_url("ssh_access_registry", DATABASE) }
    }

    /// Adds a key of a member, with its end where it has one, and returns its id.
    pub(crate) async fn add_key(
        &self,
        member: &str,
        key: &SshKey,
        end: Option<DateTime<Utc>>,
    ) -> Result<String, AdminError> {
        let file = key.public_file().display().to_string();
        let end = end.map(|end| end.to_rfc3339_opts(SecondsFormat::Secs, true));
        let mut arguments = vec!["keys", "add", "--member", member];
        if let Some(end) = &end {
            arguments.extend(["--expires-at", end]);
        }
        arguments.push(&file);
        let added = self.run(&arguments).await?;
        let id = added["keyId"].as_str().map(str::to_owned);
        id.ok_or_else(|| AdminError::Answer(arguments.join(" ")))
    }

    /// Removes a key.
    pub(crate) async fn remove_key(&self, id: &str) -> Result<(), AdminError> {
        self.run(&["keys", "remove", id]).await.map(drop)
    }

    /// Makes a member a user of a Site.
    pub(crate) async fn add_account(
        &self,
        site: &str,
        member: &str,
        user: &str,
    ) -> Result<(), AdminError> {
        let member = ["--member", member, "--unix-user", user];
        self.run(&[&["accounts", "add", "--site", site], &member[..]].concat()).await.map(drop)
    }

    /// Takes a user of a Site from its member.
    pub(crate) async fn remove_account(&self, site: &str, user: &str) -> Result<(), AdminError> {
        self.run(&["accounts", "remove", "--site", site, "--unix-user", user]).await.map(drop)
    }

    async fn run(&self, arguments: &[&str]) -> Result<Value, AdminError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.run_once(arguments).await {
                // The database is away, or went away in the middle.
                Err(AdminError::Refused { exit: Exit::Code(69 | 70), .. })
                    if Instant::now() < deadline =>
                {
                    sleep(PAUSE).await;
                }
                done => return done,
            }
        }
    }

    async fn run_once(&self, arguments: &[&str]) -> Result<Value, AdminError> {
        let mut command = Command::new(bin("site-admin"));
        command.env("SSH_ACCESS_REGISTRY_DATABASE_URL", &self.url).args(arguments).arg("--json");
        let process = Process::start(command)?;
        let exit = process.wait_exit(RUNS_WITHIN).await?;
        let shown = || arguments.join(" ");
        if exit != Exit::Code(0) {
            return Err(AdminError::Refused { arguments: shown(), exit, said: process.tail() });
        }
        let lines = process.lines();
        let mut printed = lines.iter().filter(|line| line.stream == Stream::Out);
        let object = printed.find_map(|line| serde_json::from_str(&line.text).ok());
        object.ok_or_else(|| AdminError::Answer(shown()))
    }
}
