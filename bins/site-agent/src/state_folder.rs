//! The state folder of an agent: how it comes to have a name that lasts, that nobody else can write
//! into it, and how a second agent is kept away from it.

use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
    time::Duration,
};

use rustix::{
    fs::OFlags,
    process::{getegid, geteuid, getgroups},
};

/// A link in the place of a file is not followed.
pub(crate) const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// How often, and with what pause, a lock is tried again that another holds. A program that an agent
/// was starting when it was killed holds its lock for a moment longer.
const LOCK_TRIES: usize = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Makes the folder where it is missing, and locks it for as long as the file is open.
pub(crate) fn make_and_lock(folder: &Path) -> Result<File, TryLockError> {
    make_folder(folder).map_err(TryLockError::Error)?;
    let held = std::fs::metadata(folder).map_err(TryLockError::Error)?;
    ours_alone(&held).map_err(TryLockError::Error)?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(NO_LINK)
        .open(folder.join("lock"))
        .map_err(TryLockError::Error)?;
    take(&lock, || std::thread::sleep(LOCK_PAUSE))?;
    Ok(lock)
}

/// Takes a folder that nobody else can write into: of the agent's user or of root, and closed to all
/// others. A group may write that the agent is in: a cluster opens each volume to the group that it
/// gives the Pod (`fsGroup`), after each start anew.
fn ours_alone(folder: &Metadata) -> io::Result<()> {
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let (user, mode) = (folder.uid(), folder.mode() & 0o7777);
    if user != 0 && user != geteuid().as_raw() {
        return refused(format!("it belongs to the user {user}"));
    }
    if mode & 0o002 != 0 {
        return refused(format!("everybody could write into it: it has the mode {mode:04o}"));
    }
    let group = folder.gid();
    let is_in =
        |groups: Vec<rustix::process::Gid>| groups.iter().any(|ours| ours.as_raw() == group);
    if mode & 0o020 != 0 && getegid().as_raw() != group && !is_in(getgroups()?) {
        let why = "could write into it, and the agent is not in it";
        return refused(format!("the group {group} {why}: it has the mode {mode:04o}"));
    }
    Ok(())
}

fn take(lock: &File, mut pause: impl FnMut()) -> Result<(), TryLockError> {
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => pause(),
            tried => return tried,
        }
    }
    lock.try_lock()
}

/// Makes a folder, private, with everything that is missing above it. Afterwards its name, and each
/// name that was missing above it, is on disk.
fn make_folder(folder: &Path) -> io::Result<()> {
    make(folder, &mut |parent| File::open(parent)?.sync_all())
}

fn make(folder: &Path, sync: &mut impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = match folder.parent() {
        None => return Ok(()),
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    };
    if folder.is_dir() {
        // An agent may have made it and been killed before it was on disk. One that we can't have
        // made, because its parent is closed to us or never written, was others' to keep.
        return match sync(parent) {
            Err(error) if not_ours(&error) => Ok(()),
            synced => synced,
        };
    }
    make(parent, sync)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        // Another agent was faster; the lock is to decide.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        made => made?,
    }
    sync(parent)
}

fn not_ours(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            // A file system without synchronised folders, on which the state's is mounted.
            | io::ErrorKind::InvalidInput
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, chown, symlink},
    };

    #[test]
    fn each_new_name_is_on_disk_before_anything_is_made_below_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let mut synced = Vec::new();
        make(&at("a/b/c"), &mut |parent| {
            synced.push((parent.to_owned(), ["a", "a/b", "a/b/c"].map(|name| at(name).exists())));
            Ok(())
        })
        .unwrap();
        assert_eq!(
            synced,
            [
                (root.path().parent().unwrap().to_owned(), [false, false, false]),
                (root.path().to_owned(), [true, false, false]),
                (at("a"), [true, true, false]),
                (at("a/b"), [true, true, true]),
            ]
        );
        for name in ["a", "a/b", "a/b/c"] {
            assert_eq!(fs::metadata(at(name)).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_folder_that_is_there_is_synchronised_again_where_it_may_be_ours() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("state");
        make_folder(&folder).unwrap();
        let mut synced = Vec::new();
        let mut note = |parent: &Path| {
            synced.push(parent.to_owned());
            Ok(())
        };
        make(&folder, &mut note).unwrap();
        make(Path::new("src"), &mut note).unwrap();
        assert_eq!(synced, [root.path(), Path::new(".")]);
        let closed = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        make(&folder, &mut { closed }).unwrap();
        make(&root.path().join("new"), &mut { closed }).unwrap_err();
        let broken = |_: &Path| Err(io::Error::other("the disk is gone"));
        make(&folder, &mut { broken }).unwrap_err();
    }

    #[test]
    fn a_file_in_its_place_is_refused_and_a_link_to_a_folder_is_not() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        make_folder(&file).unwrap_err();
        make_folder(&file.join("state")).unwrap_err();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(root.path(), &link).unwrap();
        make_folder(&link).unwrap();
        make_folder(Path::new("/")).unwrap();
    }

    #[test]
    fn a_folder_that_others_could_write_into_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("state");
        let try_as = |user: u32, group: u32, mode: u32| {
            chown(&folder, Some(user), Some(group)).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            match make_and_lock(&folder) {
                Err(TryLockError::Error(error)) => Err(error.to_string()),
                Err(TryLockError::WouldBlock) => panic!("nobody else holds it"),
                Ok(_) => Ok(()),
            }
        };
        make_and_lock(&folder).unwrap();
        assert_eq!(
            geteuid().as_raw(),
            0,
            "only root can give a folder away: run the tests as root"
        );
        let ours = getegid().as_raw();
        for (group, mode) in [(ours, 0o700), (ours, 0o755), (ours, 0o2770), (65_534, 0o755)] {
            assert_eq!(try_as(0, group, mode), Ok(()), "{group} {mode:o}");
        }
        for (user, group, mode, why) in [
            (65_534, ours, 0o700, "belongs to the user 65534"),
            (0, ours, 0o777, "everybody could write into it: it has the mode 0777"),
            (0, ours, 0o1777, "everybody could write into it: it has the mode 1777"),
            (0, 65_534, 0o770, "the group 65534 could write into it"),
        ] {
            let error = try_as(user, group, mode).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("target");
        symlink(&target, root.path().join("lock")).unwrap();
        make_and_lock(root.path()).unwrap_err();
        assert!(!target.exists());
    }

    #[test]
    fn a_lock_that_is_held_for_a_moment_longer_is_waited_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut first = Some(file.reopen().unwrap());
        first.as_ref().unwrap().try_lock().unwrap();
        take(&file.reopen().unwrap(), || drop(first.take())).unwrap();
        assert!(first.is_none());
    }
}
