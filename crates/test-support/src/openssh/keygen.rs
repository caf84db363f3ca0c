//! The program that makes and reads keys.

use std::{io, path::Path, process::Command};

use crate::debian::{self, NoServices};

/// The program that makes and reads keys. Where it is missing, Debian's package `openssh-client` is
/// installed, which starts nothing.
///
/// # Errors
///
/// When it is missing and can't be installed; only root may, and only where there is `apt-get`.
pub fn ssh_keygen() -> io::Result<Command> {
    const NAME: &str = "ssh-keygen";
    // Without a question that it understands it says how it is used, and fails; that it runs counts.
    let found = || Command::new(NAME).arg("-?").output().map(drop);
    match found() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let apt_get = Path::new("/usr/bin/apt-get");
            let _quiet = NoServices::until_dropped(Path::new("/"))?;
            debian::update(apt_get)?;
            debian::install(apt_get, "openssh-client")?;
            found()?;
        }
        found => found?,
    }
    Ok(Command::new(NAME))
}
