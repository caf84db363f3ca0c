//! The check of a systemd unit.

use std::{io, path::Path, process::Command};

use crate::debian::{self, NoServices};

/// The program that checks units. Where it is missing, Debian's package `systemd` is installed,
/// which starts nothing.
///
/// # Errors
///
/// When it is missing and can't be installed; only root may, and only where there is `apt-get`.
pub fn systemd_analyze() -> io::Result<Command> {
    let found = || Command::new("systemd-analyze").arg("--version").output().map(drop);
    match found() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let apt_get = Path::new("/usr/bin/apt-get");
            let _quiet = NoServices::until_dropped(Path::new("/"))?;
            debian::update(apt_get)?;
            debian::install(apt_get, "systemd")?;
            found()?;
        }
        found => found?,
    }
    Ok(Command::new("systemd-analyze"))
}
