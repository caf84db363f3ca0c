//! Debian's package of PostgreSQL, installed so that it makes no cluster of its own.

use std::{fs, io, path::Path};

use crate::debian::{NoServices, install as install_package, update};

/// Installs the package `postgresql` of the release. Whatever it had to change in `/etc` and
/// `/usr/sbin` for that is as it was afterwards.
///
/// # Errors
///
/// When `apt-get` fails, with its last lines.
pub(super) fn install(apt_get: &Path, root: &Path) -> io::Result<()> {
    let _quiet = NoServices::until_dropped(root)?;
    update(apt_get)?;
    // First what decides about clusters, then its setting, then the server.
    install_package(apt_get, "postgresql-common")?;
    let settings = root.join("etc/postgresql-common/createcluster.conf");
    let before = match fs::read(&settings) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    let none = [before.as_slice(), b"\ncreate_main_cluster = false\n"].concat();
    fs::write(&settings, none)?;
    let installed = install_package(apt_get, "postgresql");
    fs::write(settings, before)?;
    installed
}
