//! The state folder of an agent: how it comes to have a name that lasts, and how a second agent is
//! kept away from it.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    time::Duration,
};

/// How often, and with what pause, a lock is tried again that another holds. A program that an agent
/// was starting when it was killed holds its lock for a moment longer.
const LOCK_TRIES: usize = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Makes the folder where it is missing, and locks it for as long as the file is open.
pub(crate) fn make_and_lock(folder: &Path) -> Result<File, TryLockError> {
    make_folder(folder).map_err(TryLockError::Error)?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(folder.join("lock"))
        .map_err(TryLockError::Error)?;
    take(&lock, || std::thread::sleep(LOCK_PAUSE))?;
    Ok(lock)
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
    use std::{fs, os::unix::fs::PermissionsExt};

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
    fn a_lock_that_is_held_for_a_moment_longer_is_waited_for() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut first = Some(file.reopen().unwrap());
        first.as_ref().unwrap().try_lock().unwrap();
        take(&file.reopen().unwrap(), || drop(first.take())).unwrap();
        assert!(first.is_none());
    }
}
