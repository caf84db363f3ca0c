//! Debian's packages, installed so that they start no service.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

/// Fetches the lists of packages.
///
/// # Errors
///
/// When `apt-get` fails, with its last lines.
pub(crate) fn update(apt_get: &Path) -> io::Result<()> {
    run_apt(apt_get, &["update"])
}

/// Installs a package of the release, without what it only recommends. [`NoServices`] must be held.
///
/// # Errors
///
/// When `apt-get` fails, with its last lines.
pub(crate) fn install(apt_get: &Path, package: &str) -> io::Result<()> {
    run_apt(apt_get, &["install", "--yes", "--no-install-recommends", package])
}

fn run_apt(apt_get: &Path, arguments: &[&str]) -> io::Result<()> {
    let options = ["-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=30"];
    let locks = ["-o", "DPkg::Lock::Timeout=120"];
    let all = options.iter().chain(&locks).chain(arguments);
    let all: Vec<OsString> = all.map(OsString::from).collect();
    run_tool(apt_get, &all, &[("DEBIAN_FRONTEND", "noninteractive")])
}

/// Debian asks `policy-rc.d` before it starts a service; one that is there already is left to
/// answer. One process of ours at a time: `apt-get update` waits for nobody, it fails.
pub(crate) struct NoServices {
    policy: Option<PathBuf>,
    // Dropped after the policy is gone.
    _turn: File,
}

impl NoServices {
    /// Waits for its turn and forbids every service until the value is dropped; `/usr` and `/run` are
    /// looked for under `root`.
    pub(crate) fn until_dropped(root: &Path) -> io::Result<Self> {
        let locks = root.join("run/lock");
        fs::create_dir_all(&locks)?;
        let turn = File::create(locks.join("site-control-packages"))?;
        turn.lock()?;
        let policy = root.join("usr/sbin/policy-rc.d");
        if policy.exists() {
            return Ok(Self { policy: None, _turn: turn });
        }
        fs::write(&policy, "#!/bin/sh\nexit 101\n")?;
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o755))?;
        Ok(Self { policy: Some(policy), _turn: turn })
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = &self.policy {
            let _ = fs::remove_file(policy);
        }
    }
}

/// Runs a tool to its end; its first line and its last ones are the error when it fails.
///
/// In a process group of its own: Ctrl-C at the terminal goes to all of ours, and a package is
/// installed whole.
pub(crate) fn run_tool(
    tool: &Path,
    arguments: &[OsString],
    variables: &[(&str, &str)],
) -> io::Result<()> {
    let mut command = Command::new(tool);
    command.args(arguments).envs(variables.iter().copied()).process_group(0);
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    // npm begins with the cause, apt-get ends with it.
    let told = lines.iter().take(1).chain(lines.iter().skip(1).rev().take(5).rev());
    let told = told.copied().collect::<Vec<_>>().join(" / ");
    let name = tool.file_name().unwrap_or_default().display();
    Err(io::Error::other(format!("{name} failed ({}): {told}", output.status)))
}
