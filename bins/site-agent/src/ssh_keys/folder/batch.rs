//! Files that are written and removed together, and made durable once.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsFd,
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, RenameFlags, fchmod, openat, renameat_with, statat, unlinkat},
    io::Errno,
};
use ssh_keys::UnixUser;

use super::{FILE_MODE, FileId, Folder, Obstacle, Synced};

/// The most users of a batch: so many files are open at once.
const FULL: usize = 256;

/// From so many files on, the file system is told to write all of them before each is waited for: one
/// commit of its journal in place of one a file.
const MANY: usize = 8;

/// What is to become of users' files. Nothing has happened in their places before
/// [`Batch::commit`]; what was written beside them goes when the batch is dropped.
pub(in crate::ssh_keys) struct Batch<'a> {
    folder: &'a Folder,
    written: Vec<Written>,
    removed: Vec<(UnixUser, FileId)>,
}

/// A whole file under another name.
struct Written {
    user: UnixUser,
    name: String,
    file: File,
    /// What it replaces; `None` where nothing stood in its place.
    replaces: Option<FileId>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(folder: &'a Folder) -> Self {
        Self { folder, written: Vec::new(), removed: Vec::new() }
    }

    /// Whether the batch should be committed before more is added.
    pub(in crate::ssh_keys) fn is_full(&self) -> bool {
        self.written.len() + self.removed.len() >= FULL
    }

    /// Whether there is nothing to commit.
    pub(in crate::ssh_keys) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.removed.is_empty()
    }

    /// Writes a user's next file beside its place, in which `replaces` stands now.
    pub(in crate::ssh_keys) fn write(
        &mut self,
        user: &UnixUser,
        content: &str,
        replaces: Option<FileId>,
    ) -> io::Result<()> {
        let name = temporary(user, (self.folder.random)());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // For nobody else before it is whole.
        let file = openat(&self.folder.fd, &name, flags, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(file);
        let written = file.write_all(content.as_bytes());
        // From here on it goes with the batch, also where it is not whole.
        self.written.push(Written { user: user.clone(), name, file, replaces });
        written
    }

    /// Removes a user's file, `which` now.
    pub(in crate::ssh_keys) fn remove(&mut self, user: &UnixUser, which: FileId) {
        self.removed.push((user.clone(), which));
    }

    /// Brings everything to the disk and into its place, and what was in its place before as well,
    /// where that is not certain yet. Gives the users whose files are as they were, with the reasons.
    ///
    /// # Errors
    ///
    /// Trouble of the machine, such as a full disk. Each place then has its old file or its new one,
    /// and which one it is may change once more when the machine stops without notice.
    pub(in crate::ssh_keys) fn commit(mut self) -> io::Result<Vec<(UnixUser, Obstacle)>> {
        let mut failed = Vec::new();
        // Not one is renamed before all are on the disk, so that a full disk changes nothing.
        self.sync_files()?;
        if !self.is_empty() {
            self.folder.unsynced.set(true);
        }
        for (user, which) in std::mem::take(&mut self.removed) {
            if let Some(obstacle) = self.remove_now(&user, which)? {
                failed.push((user, obstacle));
            }
        }
        while let Some(next) = self.written.pop() {
            match self.rename_now(&next) {
                Ok(None) => {}
                Ok(Some(obstacle)) => {
                    self.forget(&next.name);
                    failed.push((next.user, obstacle));
                }
                Err(error) => {
                    self.forget(&next.name);
                    return Err(error);
                }
            }
        }
        if self.folder.unsynced.get() {
            (self.folder.sync)(Synced::Names(self.folder.fd.as_fd()))?;
            self.folder.unsynced.set(false);
        }
        Ok(failed)
    }

    fn sync_files(&self) -> io::Result<()> {
        for written in &self.written {
            fchmod(&written.file, Mode::from_raw_mode(FILE_MODE))?;
        }
        if self.written.len() >= MANY {
            (self.folder.sync)(Synced::FileSystem(self.folder.fd.as_fd()))?;
        }
        for written in &self.written {
            (self.folder.sync)(Synced::File(&written.file))?;
        }
        Ok(())
    }

    fn remove_now(&self, user: &UnixUser, which: FileId) -> io::Result<Option<Obstacle>> {
        if let Some(obstacle) = self.changed(user, which)? {
            return Ok(Some(obstacle));
        }
        user_trouble(unlinkat(&self.folder.fd, user.as_str(), AtFlags::empty()))
    }

    fn rename_now(&self, next: &Written) -> io::Result<Option<Obstacle>> {
        let (fd, user) = (&self.folder.fd, next.user.as_str());
        let rename = |flags| renameat_with(fd, &next.name, fd, user, flags);
        if let Some(which) = next.replaces {
            return match self.changed(&next.user, which)? {
                Some(obstacle) => Ok(Some(obstacle)),
                None => user_trouble(rename(RenameFlags::empty())),
            };
        }
        // What came meanwhile stays.
        match rename(RenameFlags::NOREPLACE) {
            // Not every file system can do that.
            Err(Errno::INVAL) => match statat(fd, user, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Ok(Some(Obstacle::Replaced)),
                Err(Errno::NOENT) => user_trouble(rename(RenameFlags::empty())),
                Err(error) => Err(error.into()),
            },
            renamed => user_trouble(renamed),
        }
    }

    /// Whether something else than the file that was read stands in a user's place.
    fn changed(&self, user: &UnixUser, which: FileId) -> io::Result<Option<Obstacle>> {
        match statat(&self.folder.fd, user.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(self
                .folder
                .obstacle(&stat)
                .or((FileId(stat.st_ino) != which).then_some(Obstacle::Replaced))),
            Err(Errno::NOENT) => Ok(Some(Obstacle::Replaced)),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file that did not come into its place. One that stays goes at the next start.
    fn forget(&self, name: &str) {
        if let Err(error) = unlinkat(&self.folder.fd, name, AtFlags::empty()) {
            let error = io::Error::from(error);
            tracing::warn!(file = name, error = %error, "ssh_keys.leftover_not_removed");
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for written in std::mem::take(&mut self.written) {
            self.forget(&written.name);
        }
    }
}

/// Tells what stands in one user's way from trouble of the machine.
fn user_trouble(done: Result<(), Errno>) -> io::Result<Option<Obstacle>> {
    match done {
        Ok(()) => Ok(None),
        Err(Errno::ISDIR | Errno::NOTDIR) => Ok(Some(Obstacle::Folder)),
        Err(Errno::EXIST | Errno::NOENT) => Ok(Some(Obstacle::Replaced)),
        // Of a file on which something is mounted it is said that it is busy.
        Err(Errno::PERM | Errno::ACCESS | Errno::BUSY) => Ok(Some(Obstacle::Immutable)),
        Err(error) => Err(error.into()),
    }
}

/// A name beside the place of a user's file. No user has a name with a dot.
fn temporary(user: &UnixUser, random: u64) -> String {
    format!(".{}.{random:016x}", user.as_str())
}

/// Whether a name is one of [`temporary`].
pub(super) fn is_temporary(name: &str) -> bool {
    let parts = name.strip_prefix('.').and_then(|name| name.split_once('.'));
    parts.is_some_and(|(user, random)| {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        UnixUser::parse(user).is_ok() && random.len() == 16 && random.bytes().all(hex)
    })
}
