//! The npm package `oidc-provider`, and node to run it.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::debian::{self, NoServices, run_tool};

/// The last that runs on the node of the release without a warning.
const VERSION: &str = "8.8.1";

/// What is needed to run the provider.
pub(super) struct Installation {
    pub(super) node: PathBuf,
    /// The module to import.
    pub(super) module: PathBuf,
}

impl Installation {
    /// Finds both; where they are missing, node is installed by Debian's package and the provider by
    /// npm into the folder `tools`, once, however many tests ask for it at the same time.
    ///
    /// # Errors
    ///
    /// When one is missing and can't be had. The message says what to run.
    pub(super) fn find_or_install(path: &[PathBuf], tools: &Path) -> io::Result<Self> {
        fs::create_dir_all(tools)?;
        let lock = File::create(tools.join("oidc-provider.lock"))?;
        lock.lock()?;
        let node = tool(path, "node")?;
        let kept = tools.join(format!("oidc-provider-{VERSION}"));
        if !kept.is_dir() {
            fetch(&tool(path, "npm")?, tools, &kept)?;
        }
        let module = kept.join("node_modules/oidc-provider/lib/index.js");
        if module.is_file() {
            return Ok(Self { node, module });
        }
        Err(io::Error::other(format!("{} is damaged: remove it", kept.display())))
    }
}

/// A program of the path, from Debian's package of its name where it is missing.
fn tool(path: &[PathBuf], name: &str) -> io::Result<PathBuf> {
    let find = |name: &str| path.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    if let Some(found) = find(name) {
        return Ok(found);
    }
    let package = if name == "node" { "nodejs" } else { name };
    let advice = format!(
        "no {name}. Run this once, then try again: sudo apt-get install --no-install-recommends {package}"
    );
    let missing = |reason: &dyn std::fmt::Display| io::Error::other(format!("{advice} ({reason})"));
    let apt_get = find("apt-get").ok_or_else(|| missing(&"there is no apt-get"))?;
    let installed = || {
        let _quiet = NoServices::until_dropped(Path::new("/"))?;
        debian::update(&apt_get)?;
        debian::install(&apt_get, package)
    };
    installed().map_err(|error: io::Error| missing(&error))?;
    find(name).ok_or_else(|| missing(&"the package does not hold it"))
}

/// Fetches the package: whole, or not at all.
fn fetch(npm: &Path, tools: &Path, kept: &Path) -> io::Result<()> {
    let fetched = tempfile::tempdir_in(tools)?;
    let mut arguments: Vec<OsString> = [
        "install",
        "--ignore-scripts",
        "--loglevel=error",
        "--no-audit",
        "--no-fund",
        "--no-save",
        "--no-package-lock",
    ]
    .map(OsString::from)
    .into();
    arguments.extend(["--prefix".into(), fetched.path().into()]);
    arguments.push(format!("oidc-provider@{VERSION}").into());
    run_tool(npm, &arguments, &[("npm_config_update_notifier", "false")])?;
    fs::rename(fetched.path(), kept)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_missing_is_told_with_the_command_to_run() {
        let tools = tempfile::tempdir().unwrap();
        let refused = |path: &[PathBuf]| {
            let Err(error) = Installation::find_or_install(path, tools.path()) else { panic!() };
            error.to_string()
        };
        let told = refused(&[]);
        assert!(told.contains("no node") && told.contains("apt-get install"), "{told}");
        let path = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let file = path.path().join(name);
            fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let path = [path.path().to_owned()];
        script("node", "");
        assert!(refused(&path).contains("no npm"));
        script("npm", "echo 'npm error no network' >&2; exit 1");
        assert!(refused(&path).contains("no network"));
        // One that says that all is well and fetched nothing.
        script("npm", "");
        assert!(refused(&path).contains("is damaged"));
    }
}
