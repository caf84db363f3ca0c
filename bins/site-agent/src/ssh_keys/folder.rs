//! The folder of the users' files, as sshd reads it: `AuthorizedKeysFile <folder>/%u`.
//!
//! The folder is opened once and everything is done relative to it, and no name in it is followed, so
//! that nothing that stands in it leads a write elsewhere. A file is written beside its place under a
//! random name, synchronised, and renamed: whoever reads the place finds a whole file, the old one or
//! the new one. What is not ours stays as it is.

mod batch;
mod error;

use std::{
    cell::Cell,
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, fsync,
        openat, statat, syncfs, unlinkat,
    },
    io::Errno,
};
use site_client::RandomSource;
use ssh_keys::UnixUser;

use super::file::{MAX_FILE_BYTES, UserFile};

pub(super) use batch::Batch;
pub(crate) use error::FolderError;

/// The rights of a file: sshd reads it as the user.
const FILE_MODE: u32 = 0o644;
/// The most rights of the folder.
const FOLDER_MODE: u32 = 0o755;

/// An open folder, locked against a second agent.
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    owner: u32,
    random: RandomSource,
    /// How anything is brought to the disk; a test looks at what is there at each call.
    sync: Box<dyn Fn(Synced<'_>) -> io::Result<()> + Send>,
    /// Names may have changed that are not on the disk, also by an agent that was killed.
    unsynced: Cell<bool>,
}

/// What has to be on the disk before anything else is done.
#[derive(Clone, Copy, Debug)]
enum Synced<'f> {
    /// A file, with its rights.
    File(&'f File),
    /// Every file of the folder's file system: some are waited for one by one afterwards.
    FileSystem(BorrowedFd<'f>),
    /// The names in the folder.
    Names(BorrowedFd<'f>),
}

/// What stands in the place of a user's file.
#[derive(Debug)]
pub(super) enum Place {
    /// Nothing.
    Free,
    /// A file of ours, as it was written.
    Ours(Ours),
    /// A file of ours by its mark, which somebody has changed.
    Changed(FileId),
    /// Something that is not ours.
    Taken(Obstacle),
}

/// A file of ours.
#[derive(Debug)]
pub(super) struct Ours {
    /// Which file it is.
    pub(super) id: FileId,
    /// What it holds.
    pub(super) content: UserFile,
}

/// Which file stands in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64);

/// Why a user's file can't be written or removed. Nothing else is touched by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Obstacle {
    /// A symbolic link.
    #[error("a symbolic link stands in the place of the user's file")]
    Link,
    /// A folder.
    #[error("a folder stands in the place of the user's file")]
    Folder,
    /// A pipe, a socket or a device.
    #[error("a pipe, a socket or a device stands in the place of the user's file")]
    Special,
    /// A file that has another name as well.
    #[error("the file in the user's place has another name as well (a hard link)")]
    HardLink,
    /// A file of somebody else.
    #[error("the file in the user's place belongs to another user")]
    Owner,
    /// A file without our mark.
    #[error("unmanaged_file: the file in the user's place is not managed by this agent")]
    Unmanaged,
    /// Something that came while the file was written.
    #[error("something else came into the user's place meanwhile")]
    Replaced,
    /// The file may not be replaced or removed, as an immutable one, or one on which something is
    /// mounted.
    #[error("the user's file may not be replaced or removed")]
    Immutable,
}

/// Returns when it is there.
fn synced(what: Synced<'_>) -> io::Result<()> {
    match what {
        Synced::File(file) => file.sync_all(),
        Synced::FileSystem(folder) => Ok(syncfs(folder)?),
        Synced::Names(folder) => Ok(fsync(folder)?),
    }
}

impl Obstacle {
    /// Whether what stands there can be a file of ours, which still holds the keys that it held.
    pub(super) fn may_be_ours(self) -> bool {
        match self {
            Self::Link | Self::Folder | Self::Special | Self::Unmanaged => false,
            Self::HardLink | Self::Owner | Self::Replaced | Self::Immutable => true,
        }
    }
}

impl Folder {
    /// Opens a folder that belongs to `owner`, the user that this process has the rights of, and
    /// removes what an agent that was killed has left half written.
    pub(crate) fn open(path: &Path, owner: u32, random: RandomSource) -> Result<Self, FolderError> {
        // Without what would have a link at the end followed: `folder/` and `folder/.`.
        let path: PathBuf = path.components().collect();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(CWD, &path, flags, Mode::empty())
            .map_err(|error| FolderError::Open { path: path.clone(), source: error.into() })?;
        let failed = |source| FolderError::Io { path: path.clone(), source };
        let stat = fstat(&fd).map_err(|error| failed(error.into()))?;
        if stat.st_uid != owner {
            return Err(FolderError::Owner { path, found: stat.st_uid, expected: owner });
        }
        let mode = stat.st_mode & 0o7777;
        if mode & !FOLDER_MODE != 0 {
            return Err(FolderError::Mode { path, mode });
        }
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(FolderError::InUse(path)),
            Err(error) => return Err(failed(error.into())),
        }
        let sync = Box::new(synced);
        let unsynced = Cell::new(true);
        let folder = Self { fd, path: path.clone(), owner, random, sync, unsynced };
        folder.remove_leftovers().map_err(failed)?;
        Ok(folder)
    }

    /// Whether this folder still stands at its path, where sshd looks.
    ///
    /// # Errors
    ///
    /// Nothing is found there.
    pub(super) fn is_in_place(&self) -> io::Result<bool> {
        let (held, there) = (fstat(&self.fd)?, statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW)?);
        Ok((held.st_dev, held.st_ino) == (there.st_dev, there.st_ino))
    }

    /// The users in whose place something stands, sorted.
    pub(super) fn users(&self) -> io::Result<Vec<UnixUser>> {
        let mut users = Vec::new();
        self.each_name(|name| users.extend(UnixUser::parse(name).ok()))?;
        users.sort_unstable();
        Ok(users)
    }

    /// What stands in the place of a user's file.
    pub(super) fn look(&self, user: &UnixUser) -> io::Result<Place> {
        let seen = match statat(&self.fd, user.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Place::Free),
            Err(error) => return Err(error.into()),
        };
        if let Some(obstacle) = self.obstacle(&seen) {
            return Ok(Place::Taken(obstacle));
        }
        // A pipe that came meanwhile does not hold the agent up.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.fd, user.as_str(), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::LOOP) => return Ok(Place::Taken(Obstacle::Replaced)),
            Err(error) => return Err(error.into()),
        };
        let stat = fstat(&file)?;
        if let Some(obstacle) = self.obstacle(&stat) {
            return Ok(Place::Taken(obstacle));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if !UserFile::is_marked(&bytes) {
            return Ok(Place::Taken(Obstacle::Unmanaged));
        }
        let id = FileId(stat.st_ino);
        // With other rights sshd may refuse it, or others may write into it.
        let whole = stat.st_mode & 0o7777 == FILE_MODE;
        Ok(match UserFile::parse(&bytes).filter(|_| whole) {
            Some(content) => Place::Ours(Ours { id, content }),
            None => Place::Changed(id),
        })
    }

    /// Files to be written and removed together.
    pub(super) fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Why something is no file of ours, by what is known without reading it.
    fn obstacle(&self, stat: &Stat) -> Option<Obstacle> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_uid != self.owner => Some(Obstacle::Owner),
            FileType::RegularFile if stat.st_nlink != 1 => Some(Obstacle::HardLink),
            FileType::RegularFile => None,
            FileType::Symlink => Some(Obstacle::Link),
            FileType::Directory => Some(Obstacle::Folder),
            _ => Some(Obstacle::Special),
        }
    }

    fn remove_leftovers(&self) -> io::Result<()> {
        let mut leftovers = Vec::new();
        self.each_name(|name| {
            if batch::is_temporary(name) {
                leftovers.push(name.to_owned());
            }
        })?;
        for name in leftovers {
            match unlinkat(&self.fd, &name, AtFlags::empty()) {
                Ok(()) => tracing::info!(file = name, "ssh_keys.leftover_removed"),
                // Not ours, or not there any more. It is in nobody's way.
                Err(error) => {
                    let error = io::Error::from(error);
                    tracing::warn!(file = name, error = %error, "ssh_keys.leftover_not_removed");
                }
            }
        }
        Ok(())
    }

    /// Tells each name in the folder that is text.
    fn each_name(&self, mut tell: impl FnMut(&str)) -> io::Result<()> {
        for entry in Dir::read_from(self.fd.as_fd())? {
            if let Ok(name) = entry?.file_name().to_str() {
                tell(name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
