//! Looks for an installed PostgreSQL: `$PG_BIN`, then `PATH` and Debian's folders.
//!
//! It only looks; `prepare` installs.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use serde::{Deserialize, Serialize};

/// The oldest major version that Site Control works with.
pub const OLDEST_MAJOR: u32 = 15;

/// The programs `initdb` and `postgres` of one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    bin: PathBuf,
    major: u32,
}

/// Where to look. A parameter, so that a test can look elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// `$PG_BIN`: the only folder that is looked at when it is set.
    pub pg_bin: Option<OsString>,
    /// `$PATH`.
    pub path: Option<OsString>,
    /// The folder that holds one folder for each version, with a `bin` in it.
    pub versions: PathBuf,
}

/// Why the search ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// What `$PG_BIN` names is unusable; nothing else is tried then.
    #[error("PG_BIN={folder}: {reason}", folder = folder.display())]
    PgBin {
        /// What the variable names.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Search {
    /// This process's environment and Debian's folder.
    #[expect(clippy::disallowed_methods, reason = "the machine's tools, not a setting of ours")]
    pub fn of_this_process() -> Self {
        Self {
            pg_bin: env::var_os("PG_BIN").filter(|value| !value.is_empty()),
            path: env::var_os("PATH"),
            versions: PathBuf::from("/usr/lib/postgresql"),
        }
    }

    /// Finds PostgreSQL 15 or later; the highest version where there are several, `PATH` first
    /// among equals.
    ///
    /// # Errors
    ///
    /// When `$PG_BIN` is set and wrong.
    pub fn find(&self) -> Result<Option<Installation>, FindError> {
        if let Some(folder) = &self.pg_bin {
            let folder = PathBuf::from(folder);
            return Installation::at(&folder)
                .map(Some)
                .map_err(|error| FindError::PgBin { folder, reason: error.to_string() });
        }
        let on_path = self.path.iter().flat_map(env::split_paths);
        let versions = fs::read_dir(&self.versions).into_iter().flatten().flatten();
        let mut best: Option<Installation> = None;
        for folder in on_path.chain(versions.map(|version| version.path().join("bin"))) {
            let Ok(found) = Installation::at(&folder) else { continue };
            if best.as_ref().is_none_or(|best| found.major > best.major) {
                best = Some(found);
            }
        }
        Ok(best)
    }
}

impl Installation {
    /// Recognises the installation whose `postgres` stands in a folder, or is linked from there.
    ///
    /// # Errors
    ///
    /// When `postgres` or `initdb` is missing, does not run, or is older than [`OLDEST_MAJOR`].
    pub fn at(folder: &Path) -> io::Result<Self> {
        let real = fs::canonicalize(folder.join("postgres"))?;
        let bin = real.parent().unwrap_or(folder).to_owned();
        if !bin.join("initdb").is_file() {
            return Err(io::Error::other(format!("no initdb in {}", bin.display())));
        }
        let output = Command::new(&real).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        match major_version(&text) {
            Some(major) if major >= OLDEST_MAJOR => Ok(Self { bin, major }),
            Some(major) => Err(io::Error::other(format!(
                "PostgreSQL {major}, but {OLDEST_MAJOR} or later is needed"
            ))),
            None => Err(io::Error::other(format!("`postgres --version` answered {text:?}"))),
        }
    }

    /// The path of one of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.major
    }
}

/// `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`, `postgres (PostgreSQL) 18beta2`.
fn major_version(text: &str) -> Option<u32> {
    let version = text.split_once("(PostgreSQL) ")?.1;
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder with an `initdb` and a `postgres` that tells this version.
    fn fake(bin: &Path, version: &str) {
        fs::create_dir_all(bin).unwrap();
        fs::write(bin.join("initdb"), "").unwrap();
        let postgres = bin.join("postgres");
        fs::write(&postgres, format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n"))
            .unwrap();
        fs::set_permissions(postgres, fs::Permissions::from_mode(0o755)).unwrap();
    }

    struct Machine {
        root: tempfile::TempDir,
        search: Search,
    }

    impl Machine {
        fn empty() -> Self {
            let root = tempfile::tempdir().unwrap();
            let search = Search {
                pg_bin: None,
                path: Some(root.path().join("path").into()),
                versions: root.path().join("versions"),
            };
            Self { root, search }
        }

        fn install(&self, folder: &str, version: &str) -> PathBuf {
            let bin = self.root.path().join(folder);
            fake(&bin, version);
            fs::canonicalize(bin).unwrap()
        }

        fn found(&self) -> Option<PathBuf> {
            self.search.find().unwrap().map(|found| found.bin)
        }
    }

    #[test]
    fn an_empty_machine_has_none() {
        assert_eq!(Machine::empty().found(), None);
    }

    #[test]
    fn pg_bin_wins_over_a_newer_one() {
        let mut machine = Machine::empty();
        machine.install("path", "18.1");
        let chosen = machine.install("chosen", "15.4");
        machine.search.pg_bin = Some(chosen.clone().into());
        assert_eq!(machine.found(), Some(chosen));
    }

    #[test]
    fn a_wrong_pg_bin_is_an_error_even_where_there_is_another() {
        let mut machine = Machine::empty();
        machine.install("path", "18.1");
        machine.search.pg_bin = Some("/nowhere".into());
        let error = machine.search.find().unwrap_err().to_string();
        assert!(error.starts_with("PG_BIN=/nowhere: "), "{error}");
    }

    #[test]
    fn a_pg_bin_that_is_too_old_says_so() {
        let mut machine = Machine::empty();
        machine.search.pg_bin = Some(machine.install("chosen", "14.9").into());
        let error = machine.search.find().unwrap_err().to_string();
        assert!(error.ends_with("PostgreSQL 14, but 15 or later is needed"), "{error}");
    }

    #[test]
    fn the_path_wins_among_equals() {
        let machine = Machine::empty();
        machine.install("versions/16/bin", "16.2");
        let on_path = machine.install("path", "16.1");
        assert_eq!(machine.found(), Some(on_path));
    }

    #[test]
    fn the_highest_version_wins() {
        let machine = Machine::empty();
        machine.install("path", "15.1");
        machine.install("versions/9.6/bin", "9.6.24");
        let highest = machine.install("versions/17/bin", "17rc1");
        machine.install("versions/16/bin", "16.9");
        assert_eq!(machine.found(), Some(highest));
    }

    #[test]
    fn versions_before_15_are_passed_over() {
        let machine = Machine::empty();
        machine.install("path", "14.9");
        assert_eq!(machine.found(), None);
    }

    #[test]
    fn a_link_leads_to_the_folder_of_the_real_programs() {
        let machine = Machine::empty();
        let real = machine.install("real", "15.3");
        let path = machine.root.path().join("path");
        fs::create_dir_all(&path).unwrap();
        symlink(real.join("postgres"), path.join("postgres")).unwrap();
        assert_eq!(machine.found(), Some(real));
    }

    #[test]
    fn a_server_without_initdb_is_passed_over() {
        let machine = Machine::empty();
        let bin = machine.install("path", "16.1");
        fs::remove_file(bin.join("initdb")).unwrap();
        assert_eq!(machine.found(), None);
    }
}
