//! A server: started, asked what it would do, and gone.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::{
    Installation, Search,
    config::{NoSuchLine, around_the_snippet, with_administrators},
    users,
};
use crate::process::{Exit, LastSignal, Process, WaitError, free_port};

/// A machine under load starts a server late; a broken one says so at once.
const START_WITHIN: Duration = Duration::from_secs(60);
/// Ports that another process took between our look and the server's bind.
const PORTS_TO_TRY: u32 = 5;

/// What a server is to be like.
#[derive(Clone, Debug, Default)]
pub struct SshdSetup {
    /// The text of a file for `/etc/ssh/sshd_config.d`, which decides about keys.
    pub snippet: String,
    /// Unix users that the server alone knows, each with a home. They may have the names of users of
    /// the machine.
    pub users: Vec<String>,
    /// Those of the users whom the snippet's lines for administrators are to name. Where there are
    /// none, the snippet is used as it is.
    pub administrators: Vec<String>,
}

/// A running server on 127.0.0.1. Its processes and its folder go with the value.
///
/// It sees a `/etc/ssh`, a `/run` and users of its own, in a namespace of mounts that ends with it:
/// nothing on the machine is changed, also where this process is killed. So a snippet is used with its
/// paths as they are shipped.
pub struct Sshd {
    // Dropped in this order: first the server, then the folder.
    _process: Process,
    pub(super) installation: Installation,
    pub(super) port: u16,
    pub(super) folder: TempDir,
}

/// Why a server is not there.
#[derive(Debug, thiserror::Error)]
pub enum SshdError {
    /// OpenSSH is not installed.
    #[error("OpenSSH's server is not installed: `cargo xtask test` installs it")]
    Missing,
    /// A server for several users runs as root.
    #[error("a server that lets several users in has to be started by root")]
    NotRoot,
    /// Its folder, its host key or a program can't be used.
    #[error("preparing an OpenSSH server")]
    Io(#[from] io::Error),
    /// The snippet has no place for administrators.
    #[error(transparent)]
    Snippet(#[from] NoSuchLine),
    /// `sshd` refuses its configuration, or can't have a namespace of its own.
    #[error("`sshd {question}` failed:\n{said}")]
    Refused {
        /// What it was asked.
        question: String,
        /// What it said.
        said: String,
    },
    /// It ended, or did not get ready in time.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// What the namespace is made of, and then the server in place of the shell.
const ENTER: &str = r#"set -e
for file in passwd shadow group nsswitch.conf; do mount --bind "$1/etc/$file" "/etc/$file"; done
mount --bind "$1/ssh" /etc/ssh
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -m 0755 /run/sshd
shift
exec "$@""#;

/// What another package may have put beside the snippet: ways in that the agent does not know.
const OTHER_WAYS_IN: &str = "AuthorizedKeysCommand /bin/echo
AuthorizedKeysCommandUser nobody
AuthorizedKeysFile .ssh/authorized_keys
TrustedUserCAKeys /etc/ssh/host_key.pub
";

impl Sshd {
    /// Makes a server, has it check its configuration by `sshd -t`, starts it and waits until it
    /// listens.
    ///
    /// # Errors
    ///
    /// When OpenSSH is missing, this process is not root, or the server refuses or does not get ready.
    pub async fn start(setup: &SshdSetup) -> Result<Self, SshdError> {
        if !geteuid().is_root() {
            return Err(SshdError::NotRoot);
        }
        let installation = Search::of_this_process().find().ok_or(SshdError::Missing)?;
        let folder = tempfile::Builder::new().prefix("site-control-sshd-").tempdir()?;
        write_files(&installation, folder.path(), setup)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let port = free_port()?;
            let settings = folder.path().join("ssh/sshd_config");
            fs::write(settings, around_the_snippet(port))?;
            ask(&installation, folder.path(), &["-t"]).await?;
            let command = inside(&installation, folder.path(), &["-D", "-e"]);
            let process = Process::start_ending_by(command, LastSignal::Kill)?;
            let listens = |line: &str| line.starts_with("Server listening on ");
            match process.wait_for_line("that it listens", START_WITHIN, listens).await {
                Err(WaitError::Ended { tail, .. })
                    if tries < PORTS_TO_TRY && tail.contains("Address already in use") => {}
                started => {
                    started?;
                    return Ok(Self { _process: process, installation, port, folder });
                }
            }
        }
    }

    /// The folder that it sees as `/etc/ssh/site-agent`: root's, mode 0755, empty at first.
    #[must_use]
    pub fn keys_folder(&self) -> PathBuf {
        self.folder.path().join("ssh/site-agent")
    }

    /// The home of a user.
    #[must_use]
    pub fn home(&self, user: &str) -> PathBuf {
        self.folder.path().join("home").join(user)
    }

    /// What holds for a user, as `sshd -T` tells it: lines with a setting in lower case and its value.
    ///
    /// # Errors
    ///
    /// When `sshd` does not say.
    pub async fn settings_for(&self, user: &str) -> Result<Vec<String>, SshdError> {
        let who = format!("user={user},host=localhost,addr=127.0.0.1");
        ask(&self.installation, self.folder.path(), &["-T", "-C", &who]).await
    }
}

/// Makes everything that it sees but the port.
fn write_files(
    installation: &Installation,
    folder: &Path,
    setup: &SshdSetup,
) -> Result<(), SshdError> {
    let readable = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755));
    // A file with keys is read as the user, who has to get there.
    readable(folder)?;
    for inner in ["ssh", "ssh/sshd_config.d", "ssh/site-agent", "home"] {
        let inner = folder.join(inner);
        fs::create_dir(&inner)?;
        readable(&inner)?;
    }
    users::make(&folder.join("etc"), &folder.join("home"), &setup.users)?;
    let snippet = with_administrators(&setup.snippet, &setup.administrators)?;
    fs::write(folder.join("ssh/sshd_config.d/00-site-agent.conf"), snippet)?;
    fs::write(folder.join("ssh/sshd_config.d/04-directory.conf"), OTHER_WAYS_IN)?;
    let key = folder.join("ssh/host_key");
    super::login::make_key(&installation.ssh_keygen, &key)?;
    let public = fs::read_to_string(key.with_extension("pub"))?;
    fs::write(folder.join("known_hosts"), format!("* {public}"))?;
    Ok(())
}

/// Runs it for a question, and gives the lines of its answer.
async fn ask(
    installation: &Installation,
    folder: &Path,
    arguments: &[&str],
) -> Result<Vec<String>, SshdError> {
    let asked = Process::start(inside(installation, folder, arguments))?;
    let exit = asked.wait_exit(START_WITHIN).await?;
    if exit != Exit::Code(0) {
        return Err(SshdError::Refused { question: arguments.join(" "), said: asked.tail() });
    }
    Ok(asked.lines().into_iter().map(|line| line.text).collect())
}

/// The server in its namespace.
fn inside(installation: &Installation, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"])
        .arg(folder)
        .arg(&installation.sshd)
        .args(arguments)
        .args(["-f", "/etc/ssh/sshd_config"]);
    command
}
