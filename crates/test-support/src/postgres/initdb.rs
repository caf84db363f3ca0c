//! A cluster's folder: its data, its certificate and who may come in.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use super::{ClusterError, Installation, run_as::RunAs};
use crate::tls::TestCa;

/// Fills an empty folder that the user owns. `password` is the superuser's.
pub(super) fn make(
    installation: &Installation,
    folder: &Path,
    user: &RunAs,
    password: &str,
) -> Result<(), ClusterError> {
    let ca = TestCa::new();
    ca.write_to(&folder.join("ca.pem"))?;
    let (cert, key) = (folder.join("server.crt"), folder.join("server.key"));
    ca.issue(&["localhost", "127.0.0.1"]).write_to(&cert, &key)?;
    user.own(&cert)?;
    user.own(&key)?;

    let password_file = folder.join("password");
    fs::write(&password_file, "")?;
    fs::set_permissions(&password_file, fs::Permissions::from_mode(0o600))?;
    fs::write(&password_file, password)?;
    user.own(&password_file)?;

    let data = folder.join("data");
    let output = user
        .command(&installation.program("initdb"))
        .args(["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8"])
        .args(["--locale=C", "--no-sync"])
        .arg(format!("--pwfile={}", password_file.display()))
        .arg("-D")
        .arg(&data)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .output()?;
    if !output.status.success() {
        return Err(ClusterError::Initdb(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    fs::remove_file(password_file)?;
    let who = "local all all scram-sha-256\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(data.join("pg_hba.conf"), who)?;
    Ok(())
}
