//! The user that PostgreSQL runs as: it refuses to run as root.

use std::{fs, io, os::unix::fs::chown, path::Path, process::Command};

use rustix::process::geteuid;

use super::ClusterError;

/// Whom PostgreSQL runs as.
pub(super) enum RunAs {
    Ourselves,
    Other { uid: u32, gid: u32 },
}

impl RunAs {
    /// The user `postgres` or `nobody` for root, nobody else for anybody else.
    pub(super) fn of_this_process() -> Result<Self, ClusterError> {
        if !geteuid().is_root() {
            return Ok(Self::Ourselves);
        }
        let users = fs::read_to_string("/etc/passwd")?;
        let ids = |name| ids_of(&users, name).map(|(uid, gid)| Self::Other { uid, gid });
        ids("postgres").or_else(|| ids("nobody")).ok_or(ClusterError::NoUser)
    }

    /// Gives it a file.
    pub(super) fn own(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::Ourselves => Ok(()),
            Self::Other { uid, gid } => chown(path, Some(*uid), Some(*gid)),
        }
    }

    /// A program run as this user.
    pub(super) fn command(&self, program: &Path) -> Command {
        match self {
            Self::Ourselves => Command::new(program),
            Self::Other { uid, gid } => {
                let mut command = Command::new("setpriv");
                command.args([&format!("--reuid={uid}"), &format!("--regid={gid}")]);
                // The change of the user forgets what the child receives at our death.
                command.args(["--clear-groups", "--pdeathsig=INT", "--"]).arg(program);
                command
            }
        }
    }
}

fn ids_of(passwd: &str, user: &str) -> Option<(u32, u32)> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(user))?;
    let mut ids = line.split(':').skip(2);
    Some((ids.next()?.parse().ok()?, ids.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0::/root:/bin/sh\nnobody2:x:7:8::/:/bin/sh\n\
                      nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\n";
        assert_eq!(ids_of(passwd, "nobody"), Some((65534, 65533)));
        assert_eq!(ids_of(passwd, "postgres"), None);
    }
}
