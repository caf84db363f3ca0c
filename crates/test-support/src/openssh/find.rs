//! Looks for OpenSSH's server and client, and installs Debian's packages where they are missing and we
//! may.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use crate::debian::{self, NoServices};

/// The programs: of the server, of a client, and of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    pub(super) sshd: PathBuf,
    pub(super) ssh: PathBuf,
    pub(super) ssh_keygen: PathBuf,
}

/// Where to look, and what the machine allows. A parameter, so that a test can look elsewhere.
#[derive(Clone, Debug)]
pub struct Search {
    /// `$PATH`. The server is also looked for in `/usr/sbin`, which is not in everybody's.
    pub path: Option<OsString>,
    /// Whether we are root, and may install a package.
    pub is_root: bool,
    /// The folder under which `/usr` and `/etc` are; `/`.
    pub root: PathBuf,
}

/// Why there is no OpenSSH server.
#[derive(Debug, thiserror::Error)]
#[error("no OpenSSH server, and none can be prepared ({tried}).\n{ADVICE}")]
pub struct PrepareError {
    tried: String,
}

const ADVICE: &str = "Run this once, then try again: \
     sudo apt-get install --no-install-recommends openssh-server";

/// Debian's unit and its init script start no server where this file is.
const NOT_TO_BE_RUN: &str = "sshd_not_to_be_run";
const WHY_NOT: &str = "Installed for tests, which start a server of their own. Remove this file to \
                       let the machine's server run.\n";

impl Search {
    /// This process's environment and Debian's folders.
    #[expect(clippy::disallowed_methods, reason = "the machine's tools, not a setting of ours")]
    pub fn of_this_process() -> Self {
        Self { path: env::var_os("PATH"), is_root: geteuid().is_root(), root: PathBuf::from("/") }
    }

    /// What is installed; none where a program is missing.
    pub fn find(&self) -> Option<Installation> {
        let sshd = self.server()?;
        let (ssh, ssh_keygen) = (self.tool("ssh")?, self.tool("ssh-keygen")?);
        Some(Installation { sshd, ssh, ssh_keygen })
    }

    /// Finds the programs, or installs them where we are root; `tell` hears what takes a while.
    ///
    /// The machine gets no server of its own by that, neither now nor at its next start.
    ///
    /// # Errors
    ///
    /// When there are none and none can be installed; the message says the one command to run.
    pub fn find_or_install(
        &self,
        mut tell: impl FnMut(&str),
    ) -> Result<Installation, PrepareError> {
        if let Some(found) = self.find() {
            return Ok(found);
        }
        let tried = match (self.is_root, self.tool("apt-get")) {
            (true, Some(apt_get)) => {
                tell(
                    "OpenSSH's server is missing: installing Debian's package (it is not started)",
                );
                match self.install(&apt_get) {
                    Ok(()) => match self.find() {
                        Some(found) => return Ok(found),
                        None => "Debian's packages have no sshd, ssh or ssh-keygen".to_owned(),
                    },
                    Err(error) => error.to_string(),
                }
            }
            (false, Some(_)) => "only root may install Debian's package".to_owned(),
            (_, None) => "there is no apt-get".to_owned(),
        };
        Err(PrepareError { tried })
    }

    fn install(&self, apt_get: &Path) -> io::Result<()> {
        let _quiet = NoServices::until_dropped(&self.root)?;
        // Another process may have installed it while we waited for our turn.
        if self.find().is_some() {
            return Ok(());
        }
        debian::update(apt_get)?;
        // The package enables its unit: without this the port of the machine would be open from its
        // next start on. A server that was there before, where only the client is missing, is let run.
        if self.server().is_none() {
            let settings = self.root.join("etc/ssh");
            fs::create_dir_all(&settings)?;
            fs::write(settings.join(NOT_TO_BE_RUN), WHY_NOT)?;
        }
        // It wants the client's package too.
        debian::install(apt_get, "openssh-server")
    }

    fn server(&self) -> Option<PathBuf> {
        let in_sbin = || Some(self.root.join("usr/sbin/sshd")).filter(|path| path.is_file());
        self.tool("sshd").or_else(in_sbin)
    }

    fn tool(&self, name: &str) -> Option<PathBuf> {
        let folders = self.path.iter().flat_map(env::split_paths);
        // The server wants to be called by its whole path.
        let mut paths =
            folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
        paths.find(|path| path.is_file())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A machine with a PATH of one folder, and nothing installed.
    fn machine(is_root: bool) -> (tempfile::TempDir, Search) {
        let root = tempfile::tempdir().unwrap();
        for folder in ["path", "usr/sbin"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let path = Some(root.path().join("path").into());
        let search = Search { path, is_root, root: root.path().to_owned() };
        (root, search)
    }

    fn script(path: &Path, lines: &str) {
        fs::write(path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn root_installs_it_and_the_machine_gets_no_server_of_its_own() {
        let (root, search) = machine(true);
        let shown = root.path().display();
        script(
            &root.path().join("path/apt-get"),
            &format!(
                "echo \"$@\" >> {shown}/asked\n\
                 sh {shown}/usr/sbin/policy-rc.d && touch {shown}/service-started\n\
                 case \"$*\" in *openssh-server*) ;; *) exit 0 ;; esac\n\
                 test -e {shown}/etc/ssh/sshd_not_to_be_run || touch {shown}/service-enabled\n\
                 touch {shown}/usr/sbin/sshd {shown}/path/ssh {shown}/path/ssh-keygen"
            ),
        );
        let mut told = Vec::new();
        let installed = search.find_or_install(|what| told.push(what.to_owned())).unwrap();
        assert_eq!(installed.sshd, root.path().join("usr/sbin/sshd"));
        assert_eq!(installed.ssh, root.path().join("path/ssh"));
        let asked = fs::read_to_string(root.path().join("asked")).unwrap();
        assert!(asked.contains("install --yes --no-install-recommends openssh-server"), "{asked}");
        for sign in ["service-started", "service-enabled", "usr/sbin/policy-rc.d"] {
            assert!(!root.path().join(sign).exists(), "{sign}");
        }
        assert_eq!(told.len(), 1);

        search.find_or_install(|what| panic!("{what}")).unwrap();
    }

    #[test]
    fn a_server_that_is_there_is_let_run_also_where_its_client_is_installed() {
        let (root, search) = machine(true);
        script(&root.path().join("usr/sbin/sshd"), "");
        let shown = root.path().display();
        let installs = format!("touch {shown}/path/ssh {shown}/path/ssh-keygen");
        script(&root.path().join("path/apt-get"), &installs);
        search.find_or_install(|_| {}).unwrap();
        assert!(!root.path().join("etc").exists());
    }

    #[test]
    fn what_can_not_be_installed_is_told_with_the_command_to_run() {
        let (root, search) = machine(false);
        let refused = |search: &Search| search.find_or_install(|_| {}).unwrap_err().to_string();
        assert!(refused(&search).contains("there is no apt-get"));
        script(&root.path().join("path/apt-get"), "echo 'E: no network' >&2; exit 100");
        let told = refused(&search);
        assert!(told.contains("only root may install"), "{told}");
        assert!(told.contains("sudo apt-get install --no-install-recommends openssh-server"));
        let told = refused(&Search { is_root: true, ..search });
        assert!(told.contains("E: no network"), "{told}");
    }
}
