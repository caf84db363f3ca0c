//! Debian's package, installed so that it starts no service and makes no cluster of its own.

use std::{ffi::OsString, fs, io, os::unix::fs::PermissionsExt, path::Path};

use super::prepare::run_tool;

/// Installs the package `postgresql` of the release. Whatever it had to change in `/etc` and
/// `/usr/sbin` for that is as it was afterwards.
///
/// # Errors
///
/// When `apt-get` fails, with its last lines.
pub(super) fn install(apt_get: &Path, root: &Path) -> io::Result<()> {
    let _quiet = NoServices::until_dropped(root)?;
    run_apt(apt_get, &["update"])?;
    // First what decides about clusters, then its setting, then the server.
    run_apt(apt_get, &["install", "--yes", "--no-install-recommends", "postgresql-common"])?;
    let settings = root.join("etc/postgresql-common/createcluster.conf");
    let before = match fs::read(&settings) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    let none = [before.as_slice(), b"\ncreate_main_cluster = false\n"].concat();
    fs::write(&settings, none)?;
    let installed =
        run_apt(apt_get, &["install", "--yes", "--no-install-recommends", "postgresql"]);
    fs::write(settings, before)?;
    installed
}

fn run_apt(apt_get: &Path, arguments: &[&str]) -> io::Result<()> {
    let options = ["-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=30"];
    let locks = ["-o", "DPkg::Lock::Timeout=120"];
    let all = options.iter().chain(&locks).chain(arguments);
    let all: Vec<OsString> = all.map(OsString::from).collect();
    run_tool(apt_get, &all, &[("DEBIAN_FRONTEND", "noninteractive")])
}

/// Debian asks `policy-rc.d` before it starts a service; one that is there already is left to
/// answer.
struct NoServices(Option<std::path::PathBuf>);

impl NoServices {
    fn until_dropped(root: &Path) -> io::Result<Self> {
        let policy = root.join("usr/sbin/policy-rc.d");
        if policy.exists() {
            return Ok(Self(None));
        }
        fs::write(&policy, "#!/bin/sh\nexit 101\n")?;
        fs::set_permissions(&policy, fs::Permissions::from_mode(0o755))?;
        Ok(Self(Some(policy)))
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = &self.0 {
            let _ = fs::remove_file(policy);
        }
    }
}
