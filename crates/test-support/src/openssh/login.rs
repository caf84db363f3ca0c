//! Keys, and logging in with one, by OpenSSH's own client.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::{Search, Sshd};
use crate::process::{Exit, Process, Stream, WaitError};

/// Longer than a login takes on a machine that does something else as well.
const LOGIN_WITHIN: Duration = Duration::from_secs(60);

/// What the user does inside: who it is, by the server's own list of users.
const ASK_WHO: &str = "id -un";

/// A key pair in a folder of the caller's.
#[derive(Clone, Debug)]
pub struct SshKey {
    file: PathBuf,
    public: String,
}

/// What a login came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// The user came in, and was who it said.
    LetIn,
    /// The key was refused.
    Refused,
}

/// A login of which nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// `ssh` can't be started.
    #[error("starting ssh")]
    Io(#[from] io::Error),
    /// It did not end in time.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// It ended, neither inside nor refused.
    #[error("a login as {user} is neither let in nor refused ({exit}):\n{said}")]
    Neither {
        /// The user.
        user: String,
        /// How `ssh` ended.
        exit: Exit,
        /// What was said.
        said: String,
    },
}

impl SshKey {
    /// Makes an Ed25519 key by `ssh-keygen`, without a passphrase.
    ///
    /// # Errors
    ///
    /// When OpenSSH is missing, or the files are there or can't be written.
    pub fn make(folder: &Path, name: &str) -> io::Result<Self> {
        let installation = Search::of_this_process().find();
        let missing = || io::Error::new(io::ErrorKind::NotFound, "OpenSSH is not installed");
        let file = folder.join(name);
        make_key(&installation.ok_or_else(missing)?.ssh_keygen, &file)?;
        let public = fs::read_to_string(file.with_extension("pub"))?;
        // Type and key; the comment is whatever this machine is called.
        let public = public.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        Ok(Self { file, public })
    }

    /// The public key as one line: `<type> <base64>`.
    #[must_use]
    pub fn public(&self) -> &str {
        &self.public
    }

    /// The file of the public key, as `ssh-keygen` writes it.
    #[must_use]
    pub fn public_file(&self) -> PathBuf {
        self.file.with_extension("pub")
    }
}

pub(super) fn make_key(ssh_keygen: &Path, file: &Path) -> io::Result<()> {
    let mut command = Command::new(ssh_keygen);
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]).arg(file);
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}

impl Sshd {
    /// Logs in as a user with this key and no other, asks who it is there, and leaves.
    ///
    /// # Errors
    ///
    /// When it is neither let in nor refused for its key.
    pub async fn log_in(&self, user: &str, key: &SshKey) -> Result<Login, LoginError> {
        let login = Process::start(self.client(user, key))?;
        let exit = login.wait_exit(LOGIN_WITHIN).await?;
        let lines = login.lines();
        let of = |stream| {
            let of = lines.iter().filter(move |line| line.stream == stream);
            of.map(|line| line.text.as_str())
        };
        let is_refusal = |line: &str| line.contains(": Permission denied (publickey).");
        match exit {
            Exit::Code(0) if of(Stream::Out).eq([user]) => Ok(Login::LetIn),
            Exit::Code(255) if of(Stream::Err).any(is_refusal) => Ok(Login::Refused),
            exit => Err(LoginError::Neither { user: user.to_owned(), exit, said: login.tail() }),
        }
    }

    fn client(&self, user: &str, key: &SshKey) -> Command {
        let hosts = self.folder.path().join("known_hosts");
        let options = [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "PreferredAuthentications=publickey",
            "StrictHostKeyChecking=yes",
            "GlobalKnownHostsFile=/dev/null",
            "ControlPath=none",
            "ConnectTimeout=30",
            "LogLevel=ERROR",
        ];
        let mut command = Command::new(&self.installation.ssh);
        // Nothing of this machine's own settings.
        command.args(["-F", "/dev/null", "-n", "-T", "-p", &self.port.to_string()]);
        for option in options {
            command.args(["-o", option]);
        }
        command.arg("-o").arg(format!("UserKnownHostsFile={}", hosts.display()));
        command.arg("-i").arg(&key.file);
        command.args(["--", &format!("{user}@127.0.0.1"), ASK_WHO]);
        command
    }
}
