//! Changes of the grants file.
//!
//! A change is made under an advisory lock beside the file, on a new file that replaces the old
//! one whole: a reader sees the old or the new, and two writers at once lose nothing. Who could
//! read the old one can read the new: it keeps the owner, the group and the mode, though no access
//! list. The first is its owner's alone. Of a link it is the target that is replaced.

use std::{
    ffi::OsString,
    fs::{File, Metadata, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use ring::rand::SecureRandom;
use tempfile::NamedTempFile;

use crate::{
    bearer::{BearerId, NativeBearer},
    grants::{Grant, Grants, GrantsErrors},
    principal::Principal,
};

/// Why the grants file was not read or not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file's name has no folder or no last part.
    #[error("{0} can't be the name of a grants file")]
    Name(PathBuf),
    /// The lock beside the file can't be had.
    #[error("can't lock {path}")]
    Lock {
        /// The lock's file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is there and can't be read.
    #[error("can't read {path}")]
    Read {
        /// The grants file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is invalid, or would become so (too large); nothing was changed.
    #[error("{path} is not a valid grants file")]
    Invalid {
        /// The grants file.
        path: PathBuf,
        /// Every mistake in it.
        source: GrantsErrors,
    },
    /// The new file can't be made, get the owner of the old, or be put in its place. Nothing was
    /// changed.
    #[error("can't replace {path}")]
    Write {
        /// The grants file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The change is there, but a crash of the machine may undo it.
    #[error("{path} is changed, but its folder can't be synchronised")]
    Sync {
        /// The grants file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Why no bearer was issued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// The principal has an active grant. It must expire or be revoked first.
    #[error("{principal} has an active grant already, {id}, which expires at {expires_at}")]
    AlreadyActive {
        /// The principal.
        principal: String,
        /// The active grant's id.
        id: BearerId,
        /// When it expires.
        expires_at: DateTime<Utc>,
    },
    /// The life is shorter than a second, or its end is no date.
    #[error("a bearer can't live for {0:?}")]
    Life(Duration),
    /// The random source failed.
    #[error("the random source failed")]
    Random,
    /// The file could not be read or changed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Issues a bearer for `principal` that expires `life` (whole seconds) after `now`, and adds its
/// grant to the file at `path`, which is made when it is not there.
///
/// It waits for another change that is under way. The bearer goes to `hand_over` when all is ready
/// but the grant, which is made only where that succeeds: a bearer that was lost on its way must
/// not keep its principal from getting another. A bearer that was handed over before a failure is
/// nobody's, but see [`StoreError::Sync`].
///
/// # Errors
///
/// Those of `hand_over`, and [`IssueError`]; the file is as it was, but see [`StoreError::Sync`].
pub fn issue<E: From<IssueError>>(
    path: &Path,
    principal: Principal,
    life: Duration,
    now: DateTime<Utc>,
    random: &dyn SecureRandom,
    hand_over: impl FnOnce(NativeBearer) -> Result<(), E>,
) -> Result<Grant, E> {
    let (bearer, grant, replacement) = prepare(path, principal, life, now, random)?;
    hand_over(bearer)?;
    replacement.commit().map_err(IssueError::from)?;
    Ok(grant)
}

fn prepare(
    path: &Path,
    principal: Principal,
    life: Duration,
    now: DateTime<Utc>,
    random: &dyn SecureRandom,
) -> Result<(NativeBearer, Grant, Replacement), IssueError> {
    let issued_at = now.trunc_subsecs(0);
    let expires_at = expiry(issued_at, life).ok_or(IssueError::Life(life))?;
    let path = resolved(path)?;
    let lock = lock(&path)?;
    let (mut grants, old) = read(&path, now)?;
    if let Some(active) = grants.active(&principal, now) {
        return Err(IssueError::AlreadyActive {
            principal: principal.to_string(),
            id: active.id().clone(),
            expires_at: active.expires_at(),
        });
    }
    let bearer = loop {
        let bearer = NativeBearer::generate(random).map_err(|_| IssueError::Random)?;
        if !grants.has(bearer.id()) {
            break bearer;
        }
    };
    let grant = Grant::of(&bearer, principal, issued_at, expires_at);
    grants.add(grant.clone());
    let text = grants.to_json();
    parse(&path, &text, now)?;
    let replacement = Replacement::prepare(path, lock, &text, old.as_ref())?;
    Ok((bearer, grant, replacement))
}

/// A new grants file, ready to be put in the place of the old one. It is gone when it is dropped.
struct Replacement {
    path: PathBuf,
    /// Whether there is an old file.
    replaces: bool,
    file: NamedTempFile,
    _lock: File,
}

impl Replacement {
    /// Writes the text to the disk beside the old file, of which it takes the owner and the mode.
    fn prepare(
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
    fn commit(self) -> Result<(), StoreError> {
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

fn expiry(issued_at: DateTime<Utc>, life: Duration) -> Option<DateTime<Utc>> {
    if life.as_secs() == 0 {
        return None;
    }
    let life = TimeDelta::try_seconds(i64::try_from(life.as_secs()).ok()?)?;
    issued_at.checked_add_signed(life)
}

/// Where the file of this name is, or will be. A link to nothing is an error: where it leads may
/// be a folder that is not there yet.
fn resolved(path: &Path) -> Result<PathBuf, StoreError> {
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(_) if path.symlink_metadata().is_err() => Ok(path.to_owned()),
        Err(source) => Err(StoreError::Read { path: path.to_owned(), source }),
    }
}

/// The lock is a file of its own, since the grants file is replaced. It stays; closing it gives
/// the lock back, also when the process dies.
fn lock(path: &Path) -> Result<File, StoreError> {
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

/// The grants, and what the system knows of their file where there is one.
fn read(path: &Path, now: DateTime<Utc>) -> Result<(Grants, Option<Metadata>), StoreError> {
    let opened = File::open(path).and_then(|mut file| {
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok((text, file.metadata()?))
    });
    match opened {
        Ok((text, metadata)) => Ok((parse(path, &text, now)?, Some(metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((Grants::default(), None)),
        Err(source) => Err(StoreError::Read { path: path.to_owned(), source }),
    }
}

fn parse(path: &Path, text: &str, now: DateTime<Utc>) -> Result<Grants, StoreError> {
    Grants::parse(text, now).map_err(|source| StoreError::Invalid { path: path.to_owned(), source })
}
