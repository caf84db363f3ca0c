//! The clock of a single process, an hour or whatever off.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use crate::debian::{self, NoServices};

/// The library that gives a program another clock.
#[derive(Clone, Debug)]
pub struct Faketime(PathBuf);

impl Faketime {
    /// Finds the library. Where it is missing, Debian's package `faketime` is installed, which
    /// starts nothing.
    ///
    /// # Errors
    ///
    /// When it is missing and can't be installed; only root may, and only where there is `apt-get`.
    pub fn find_or_install() -> io::Result<Self> {
        if let Some(found) = find(Path::new("/usr/lib")) {
            return Ok(Self(found));
        }
        let apt_get = Path::new("/usr/bin/apt-get");
        let _quiet = NoServices::until_dropped(Path::new("/"))?;
        debian::update(apt_get)?;
        debian::install(apt_get, "faketime")?;
        let missing = || io::Error::other("the package faketime holds no libfaketimeMT.so.1");
        find(Path::new("/usr/lib")).map(Self).ok_or_else(missing)
    }

    /// What a program has in its environment to live `seconds` ahead of us, or behind with a
    /// negative number. Its children inherit it. Its monotonic clock stays ours, and so do the times
    /// of files.
    #[must_use]
    pub fn variables(&self, seconds: i64) -> Vec<(OsString, OsString)> {
        let text = |name: &str, value: String| (name.into(), value.into());
        vec![
            ("LD_PRELOAD".into(), self.0.clone().into()),
            text("FAKETIME", format!("{seconds:+}s")),
            text("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            text("DONT_FAKE_MONOTONIC", "1".to_owned()),
            text("NO_FAKE_STAT", "1".to_owned()),
        ]
    }

    /// Removes what such a program leaves in shared memory when it is killed.
    pub fn forget(pid: u32) {
        for name in [format!("faketime_shm_{pid}"), format!("sem.faketime_sem_{pid}")] {
            // One that ended by itself has removed it.
            let _ = fs::remove_file(Path::new("/dev/shm").join(name));
        }
    }
}

/// The library for programs with threads, in the folder of the machine's architecture.
fn find(libraries: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(libraries).ok()?.flatten();
    let mut paths = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    paths.find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn seconds(variables: Vec<(OsString, OsString)>) -> i64 {
        let output = Command::new("date").arg("+%s").envs(variables).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }

    #[test]
    fn a_killed_program_leaves_nothing_once_it_is_forgotten() {
        let variables = Faketime::find_or_install().unwrap().variables(3_600);
        let mut child = Command::new("sleep").arg("1000").envs(variables).spawn().unwrap();
        let left = Path::new("/dev/shm").join(format!("faketime_shm_{}", child.id()));
        while !left.exists() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(left.exists(), "a kill leaves it behind, or this test looks at the wrong place");
        Faketime::forget(child.id());
        assert!(!left.exists());
    }

    #[test]
    fn a_program_lives_an_hour_ahead_or_behind() {
        let faketime = Faketime::find_or_install().unwrap();
        for off in [3_600, -3_600] {
            let now = seconds(Vec::new());
            let there = seconds(faketime.variables(off));
            assert!((there - now - off).abs() < 60, "{there} at {now}");
        }
    }
}
