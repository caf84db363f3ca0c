//! Private outputs, each in a file under its digest, for as long as a result here names it.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use site_client::output_digest;
use site_protocol::Digest;

/// The folder of the files.
pub(super) struct Outputs {
    state_folder: PathBuf,
    folder: PathBuf,
}

impl Outputs {
    pub(super) fn in_folder(state_folder: &Path) -> Self {
        Self { state_folder: state_folder.to_owned(), folder: state_folder.join("outputs") }
    }

    /// Keeps bytes; returns when they and their name are on disk.
    pub(super) fn keep(&self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Ok(()) => File::open(&self.state_folder)?.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let beside = self.folder.join("new");
        let mut file =
            OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, self.path(digest))?;
        File::open(&self.folder)?.sync_all()
    }

    /// The bytes that were kept.
    ///
    /// # Errors
    ///
    /// Also when the file holds others now.
    pub(super) fn read(&self, digest: Digest) -> io::Result<Vec<u8>> {
        let bytes = fs::read(self.path(digest))?;
        if output_digest(&bytes) == digest {
            Ok(bytes)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the kept output was changed"))
        }
    }

    /// Removes a file that nothing names any more. One that stays costs only its room, and goes at
    /// the next start.
    pub(super) fn forget(&self, digest: Digest) {
        self.remove(&self.path(digest));
    }

    /// Removes every file but those that are named.
    pub(super) fn forget_all_but(&self, named: impl Iterator<Item = Digest>) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        let named: std::collections::HashSet<_> = named.map(|digest| self.path(digest)).collect();
        for file in files.flatten().map(|file| file.path()) {
            if !named.contains(&file) {
                self.remove(&file);
            }
        }
    }

    fn remove(&self, path: &Path) {
        if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(error = %error, "journal.output_not_removed");
        }
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(digest.to_string())
    }
}
