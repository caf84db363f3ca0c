//! Changes of the grants file.
//!
//! A change is made under an advisory lock beside the file, on a new file that replaces the old
//! one whole: a reader sees the old or the new, and two writers at once lose nothing. Only the
//! owner may read it.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
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

/// A new bearer, to be handed over now: it can't be read back from the file.
#[derive(Debug)]
pub struct Issued {
    /// The bearer.
    pub bearer: NativeBearer,
    /// Its grant, as it stands in the file.
    pub grant: Grant,
}

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
    /// The new file can't be put in the place of the old. Where only the folder could not be
    /// synchronised, the change may be there already.
    #[error("can't replace {path}")]
    Write {
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
    #[error("the grants file was not changed")]
    Store(#[from] StoreError),
}

/// Issues a bearer for `principal` that expires `life` (whole seconds) after `now`, and adds its
/// grant to the file at `path`, which is made when it is not there.
///
/// It waits for another change that is under way.
///
/// # Errors
///
/// [`IssueError`]; the file is as it was, but see [`StoreError::Write`].
pub fn issue(
    path: &Path,
    principal: Principal,
    life: Duration,
    now: DateTime<Utc>,
    random: &dyn SecureRandom,
) -> Result<Issued, IssueError> {
    let issued_at = now.trunc_subsecs(0);
    let expires_at = expiry(issued_at, life).ok_or(IssueError::Life(life))?;
    change(path, now, |grants| {
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
        Ok(Issued { bearer, grant })
    })
}

/// Reads the file, has it changed, and replaces it, all under the lock. Where `change` fails, the
/// file stays as it is.
fn change<T, E: From<StoreError>>(
    path: &Path,
    now: DateTime<Utc>,
    change: impl FnOnce(&mut Grants) -> Result<T, E>,
) -> Result<T, E> {
    let _lock = lock(path)?;
    let mut grants = read(path, now)?;
    let changed = change(&mut grants)?;
    let text = grants.to_json();
    parse(path, &text, now)?;
    replace(path, &text).map_err(|source| StoreError::Write { path: path.to_owned(), source })?;
    Ok(changed)
}

fn expiry(issued_at: DateTime<Utc>, life: Duration) -> Option<DateTime<Utc>> {
    if life.as_secs() == 0 {
        return None;
    }
    let life = TimeDelta::try_seconds(i64::try_from(life.as_secs()).ok()?)?;
    issued_at.checked_add_signed(life)
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

fn read(path: &Path, now: DateTime<Utc>) -> Result<Grants, StoreError> {
    match fs::read_to_string(path) {
        Ok(text) => parse(path, &text, now),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Grants::default()),
        Err(source) => Err(StoreError::Read { path: path.to_owned(), source }),
    }
}

fn parse(path: &Path, text: &str, now: DateTime<Utc>) -> Result<Grants, StoreError> {
    Grants::parse(text, now).map_err(|source| StoreError::Invalid { path: path.to_owned(), source })
}

/// Writes the text to a new file beside the old one and renames it. Both the file and the folder
/// are synchronised, so that a grant that was handed over survives a crash.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Its mode is 0600 from the beginning, and its name is not taken.
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}
