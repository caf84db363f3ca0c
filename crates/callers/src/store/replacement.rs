//! How the grants file is locked and replaced.

use std::{
    ffi::OsString,
    fs::{File, Metadata, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::StoreError;

/// A new grants file, ready to be put in the place of the old one. It is gone when it is dropped.
pub(super) struct Replacement {
    path: PathBuf,
    /// Whether there is an old file.
    replaces: bool,
    file: NamedTempFile,
    _lock: File,
}

impl Replacement {
    /// Writes the text to the disk beside the old file, of which it takes the owner and the mode.
    pub(super) fn prepare(
        path: PathBuf,
        lock: File,
        text: &str,
        old: Option<&Metadata>,
    ) -> Result<Self, StoreError> {
        let written = || {
            // Its mode is 0600 from the beginning, and its name is not taken.
            let mut file = NamedTempFile::new_in(folder(&path))?;
            file.write_all(text.as_bytes())?;
            if let Some(old) = old {
                take_owner(file.as_file(), old)?;
            }
            file.as_file().sync_all()?;
            Ok(file)
        };
        match written() {
            Ok(file) => Ok(Self { path, replaces: old.is_some(), file, _lock: lock }),
            Err(source) => Err(StoreError::Write { path, source }),
        }
    }

    /// Renames it. The folder is synchronised as well, so that a grant survives a crash.
    pub(super) fn commit(self) -> Result<(), StoreError> {
        let Self { path, replaces, file, _lock } = self;
        // What came to the place since it was empty is not ours: the bearer itself, perhaps.
        let put = if replaces { file.persist(&path) } else { file.persist_noclobber(&path) };
        if let Err(error) = put {
            return Err(StoreError::Write { path, source: error.error });
        }
        let synced = File::open(folder(&path)).and_then(|folder| folder.sync_all());
        synced.map_err(|source| StoreError::Sync { path, source })
    }
}

/// Gives a file the owner, the group and the mode of another.
fn take_owner(file: &File, of: &Metadata) -> io::Result<()> {
    let mine = file.metadata()?;
    if (mine.uid(), mine.gid()) != (of.uid(), of.gid()) {
        fchown(file, Some(of.uid()), Some(of.gid()))?;
    }
    // After the owner: until then only the owner before may read it.
    file.set_permissions(Permissions::from_mode(of.mode() & 0o777))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Where the file of this name is, or will be. A link to nothing is an error: where it leads may
/// be a folder that is not there yet.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, StoreError> {
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(_) if path.symlink_metadata().is_err() => Ok(path.to_owned()),
        Err(source) => Err(StoreError::Read { path: path.to_owned(), source }),
    }
}

/// The lock is a file of its own, since the grants file is replaced. It stays; closing it gives
/// the lock back, also when the process dies.
pub(super) fn lock(path: &Path) -> Result<File, StoreError> {
    let mut name: OsString =
        path.file_name().ok_or_else(|| StoreError::Name(path.to_owned()))?.to_owned();
    name.push(".lock");
    let path = path.with_file_name(name);
    let failed = |source| StoreError::Lock { path: path.clone(), source };
    let mut options = OpenOptions::new();
    let file = options.create(true).write(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}
