//! Looks for RabbitMQ, and installs Debian's package where there is none and we may.

use std::{
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use crate::debian::{self, NoServices};

/// The server's script and the port mapper of Erlang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    pub(super) server: PathBuf,
    pub(super) epmd: PathBuf,
}

/// Where to look, and what the machine allows. A parameter, so that a test can look elsewhere.
#[derive(Clone, Debug)]
pub struct Search {
    /// `$RABBITMQ_BIN`: the folder of `rabbitmq-server`, where it is not Debian's.
    pub rabbitmq_bin: Option<OsString>,
    /// `$PATH`, where Erlang's programs are.
    pub path: Option<OsString>,
    /// Whether we are root, and may install a package.
    pub is_root: bool,
    /// The folder under which `/usr` is; `/`.
    pub root: PathBuf,
}

/// Why there is no RabbitMQ.
#[derive(Debug, thiserror::Error)]
#[error("no RabbitMQ, and none can be prepared ({tried}).\n{ADVICE}")]
pub struct PrepareError {
    tried: String,
}

const ADVICE: &str = "Run this once, then try again: sudo apt-get install --no-install-recommends rabbitmq-server\n\
     (or set RABBITMQ_BIN to the folder of its `rabbitmq-server`, with Erlang on the PATH)";

impl Search {
    /// This process's environment and Debian's folders.
    #[expect(clippy::disallowed_methods, reason = "the machine's tools, not a setting of ours")]
    pub fn of_this_process() -> Self {
        Self {
            rabbitmq_bin: env::var_os("RABBITMQ_BIN").filter(|value| !value.is_empty()),
            path: env::var_os("PATH"),
            is_root: geteuid().is_root(),
            root: PathBuf::from("/"),
        }
    }

    /// What is installed; none where a part is missing.
    pub fn find(&self) -> Option<Installation> {
        // Debian's wrapper in /usr/sbin changes the user and the paths; the script behind it doesn't.
        let debian = || self.root.join("usr/lib/rabbitmq/bin");
        let folder = self.rabbitmq_bin.as_ref().map_or_else(debian, PathBuf::from);
        let server = folder.join("rabbitmq-server");
        let epmd = self.tool("epmd")?;
        server.is_file().then_some(Installation { server, epmd })
    }

    /// Finds RabbitMQ, or installs it where we are root; `tell` hears what takes a while.
    ///
    /// # Errors
    ///
    /// When there is none and none can be installed; the message says the one command to run.
    pub fn find_or_install(
        &self,
        mut tell: impl FnMut(&str),
    ) -> Result<Installation, PrepareError> {
        if let Some(found) = self.find() {
            return Ok(found);
        }
        let tried = match (&self.rabbitmq_bin, self.is_root, self.tool("apt-get")) {
            (Some(folder), ..) => {
                format!("RABBITMQ_BIN={} has no rabbitmq-server", Path::new(folder).display())
            }
            (None, true, Some(apt_get)) => {
                tell("RabbitMQ is missing: installing Debian's package (no service is started)");
                match self.install(&apt_get) {
                    Ok(()) => match self.find() {
                        Some(found) => return Ok(found),
                        None => "Debian's package has no rabbitmq-server".to_owned(),
                    },
                    Err(error) => error.to_string(),
                }
            }
            (None, false, Some(_)) => "only root may install Debian's package".to_owned(),
            (None, _, None) => "there is no apt-get".to_owned(),
        };
        Err(PrepareError { tried })
    }

    fn install(&self, apt_get: &Path) -> io::Result<()> {
        let _quiet = NoServices::until_dropped(&self.root)?;
        debian::update(apt_get)?;
        debian::install(apt_get, "rabbitmq-server")
    }

    fn tool(&self, name: &str) -> Option<PathBuf> {
        let folders = self.path.iter().flat_map(env::split_paths);
        folders.map(|folder| folder.join(name)).find(|path| path.is_file())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// A machine with a PATH of one folder, and nothing installed.
    fn machine(is_root: bool) -> (tempfile::TempDir, Search) {
        let root = tempfile::tempdir().unwrap();
        for folder in ["path", "usr/sbin"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let path = Some(root.path().join("path").into());
        let search = Search { rabbitmq_bin: None, path, is_root, root: root.path().to_owned() };
        (root, search)
    }

    fn script(path: &Path, lines: &str) {
        fs::write(path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn root_installs_it_while_no_service_may_start() {
        let (root, search) = machine(true);
        let shown = root.path().display();
        script(
            &root.path().join("path/apt-get"),
            &format!(
                "echo \"$@\" >> {shown}/asked\n\
                 sh {shown}/usr/sbin/policy-rc.d && touch {shown}/service-started\n\
                 mkdir -p {shown}/usr/lib/rabbitmq/bin\n\
                 touch {shown}/usr/lib/rabbitmq/bin/rabbitmq-server {shown}/path/epmd"
            ),
        );
        let mut told = Vec::new();
        let installed = search.find_or_install(|what| told.push(what.to_owned())).unwrap();
        assert_eq!(installed.server, root.path().join("usr/lib/rabbitmq/bin/rabbitmq-server"));
        let asked = fs::read_to_string(root.path().join("asked")).unwrap();
        assert!(asked.contains("install --yes --no-install-recommends rabbitmq-server"), "{asked}");
        assert!(!root.path().join("service-started").exists());
        assert!(!root.path().join("usr/sbin/policy-rc.d").exists());
        assert_eq!(told.len(), 1);

        search.find_or_install(|what| panic!("{what}")).unwrap();
    }

    #[test]
    fn what_can_not_be_installed_is_told_with_the_command_to_run() {
        let (root, search) = machine(false);
        let refused = |search: &Search| search.find_or_install(|_| {}).unwrap_err().to_string();
        assert!(refused(&search).contains("there is no apt-get"));
        script(&root.path().join("path/apt-get"), "echo 'E: no network' >&2; exit 100");
        let told = refused(&search);
        assert!(told.contains("only root may install"), "{told}");
        assert!(told.contains("sudo apt-get install --no-install-recommends rabbitmq-server"));
        let told = refused(&Search { is_root: true, ..search.clone() });
        assert!(told.contains("E: no network"), "{told}");
        let told = refused(&Search { rabbitmq_bin: Some("/nowhere".into()), ..search });
        assert!(told.contains("RABBITMQ_BIN=/nowhere"), "{told}");
    }
}
