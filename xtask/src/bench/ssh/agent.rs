//! The agent of a Site: the real `site-agent ssh-keys` on folders of its own.

use std::{
    collections::BTreeMap,
    error::Error,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use test_support::{
    Process, TestSite, bin,
    process::{LastSignal, WaitError},
};

use super::copy::Row;

/// How long it may take to apply everything.
const WITHIN: Duration = Duration::from_secs(1_800);

/// A running agent. It ends with the value; its folders stay.
pub(super) struct Agent {
    pub(super) process: Process,
    begun: Instant,
}

/// The folders of an agent: what it writes for sshd, and its state.
pub(super) struct Folders(PathBuf);

impl Folders {
    /// New ones, below a folder.
    pub(super) fn new(parent: &Path, name: &str) -> io::Result<Self> {
        let folders = Self(parent.join(name));
        fs::create_dir(&folders.0)?;
        fs::DirBuilder::new().mode(0o755).create(folders.keys())?;
        Ok(folders)
    }

    /// The folder of the users' files.
    pub(super) fn keys(&self) -> PathBuf {
        self.0.join("keys")
    }

    /// Where a user's file is.
    pub(super) fn file(&self, user: &str) -> PathBuf {
        self.keys().join(user)
    }

    /// Takes the state away, so that the next agent takes a snapshot.
    pub(super) fn forget(&self) -> io::Result<()> {
        fs::remove_dir_all(self.state())
    }

    /// Takes everything away.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(self.0)
    }

    fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    /// Every file, by user.
    pub(super) fn read(&self) -> io::Result<BTreeMap<String, String>> {
        let entries = fs::read_dir(self.keys())?.map(|entry| {
            let entry = entry?;
            let user = entry.file_name().into_string().map_err(|_| io::Error::other("a name"))?;
            Ok((user, fs::read_to_string(entry.path())?))
        });
        entries.collect()
    }
}

impl Agent {
    /// Starts the agent of a Site.
    pub(super) fn start(site: &TestSite, folders: &Folders) -> io::Result<Self> {
        let mut command = Command::new(bin("site-agent"));
        command
            .args(["ssh-keys", "--folder"])
            .arg(folders.keys())
            .arg("--state")
            .arg(folders.state())
            .env("SSH_ACCESS_SITE_API_URL", site.origin())
            .env("SITE_API_CA_FILE", site.file("tls/ca.crt"))
            .env("SITE_API_TOKEN_FILE", site.file("ssh-bearer"));
        let begun = Instant::now();
        Ok(Self { process: Process::start_ending_by(command, LastSignal::Kill)?, begun })
    }

    /// From its start until a snapshot is applied and durable.
    pub(super) async fn applied(&self) -> Result<Duration, WaitError> {
        self.told("that the snapshot is applied", "\"ssh_keys.snapshot_applied\"").await
    }

    /// From its start until the Site API has found the files to be what is in force.
    pub(super) async fn attested(&self) -> Result<Duration, WaitError> {
        self.told("that the files are what is in force", "\"ssh_keys.attested\"").await
    }

    async fn told(&self, what: &str, message: &str) -> Result<Duration, WaitError> {
        self.process.wait_for_line(what, WITHIN, |line| line.contains(message)).await?;
        Ok(self.begun.elapsed())
    }
}

/// Compares files with what is in force: a user's file has the user's keys and no more.
pub(super) fn check(files: &BTreeMap<String, String>, rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let mut in_force: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in rows {
        let line = format!("restrict,pty {} {}", row.public_key, row.key_id);
        in_force.entry(&row.unix_user).or_default().push(line);
    }
    if files.len() != in_force.len() {
        let (found, wanted) = (files.len(), in_force.len());
        return Err(format!("void: {found} files where {wanted} users have keys").into());
    }
    for (user, wanted) in in_force {
        let text = files.get(user).ok_or_else(|| format!("void: {user} has no file"))?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let found: Vec<_> = lines.filter_map(|line| line.split_once(',')).map(|at| at.1).collect();
        if found != wanted {
            return Err(format!("void: the file of {user} has other keys").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(user: &str, key: &str) -> Row {
        Row { unix_user: user.into(), key_id: format!("key_{key}"), public_key: format!("t {key}") }
    }

    fn file(keys: &[&str]) -> String {
        let line = |key| format!("expiry-time=\"2\",restrict,pty t {key} key_{key}\n");
        format!("# mark\n{}", keys.iter().map(line).collect::<String>())
    }

    #[test]
    fn a_key_more_less_or_different_makes_a_run_void() {
        let rows = [row("a", "1"), row("a", "2"), row("b", "3")];
        let files = |a: &[&str], more: &[&str]| -> BTreeMap<String, String> {
            let others = more.iter().map(|user| ((*user).to_owned(), file(&["3"])));
            others.chain([("a".to_owned(), file(a))]).collect()
        };
        check(&files(&["1", "2"], &["b"]), &rows).unwrap();
        for wrong in [
            files(&["1"], &["b"]),
            files(&["1", "2", "4"], &["b"]),
            files(&["2", "1"], &["b"]),
            files(&["1", "2"], &[]),
            files(&["1", "2"], &["c"]),
            files(&["1", "2"], &["b", "c"]),
        ] {
            check(&wrong, &rows).unwrap_err();
        }
    }
}
