//! Changes of the grants file.
//!
//! A change is made under an advisory lock beside the file, on a new file that replaces the old
//! one whole: a reader sees the old or the new, and two writers at once lose nothing. Who could
//! read the old one can read the new: it keeps the owner, the group and the mode, though no access
//! list. The first is its owner's alone. Of a link it is the target that is replaced.

mod replacement;

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use ring::rand::SecureRandom;

use crate::{
    bearer::{BearerId, NativeBearer},
    grants::{Grant, Grants, GrantsErrors},
    principal::{Principal, Scope, SiteId},
};

use replacement::{Replacement, lock, resolved};

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
    /// The bearer was handed over, and then its grant could not be put in its place: that bearer is
    /// nobody's, and never will be anybody's.
    #[error("the bearer that was handed over is not valid: its grant could not be stored")]
    NotGranted(#[source] StoreError),
    /// The file could not be read or changed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Issues a bearer for `principal` that expires `life` (whole seconds) after `now`, and adds its
/// grant to the file at `path`, which is made when it is not there.
///
/// It waits for another change that is under way. The bearer goes to `hand_over`, with the
/// grant that it will have, when all is ready but the grant, which is made only where that succeeds: a bearer that was lost on its way must
/// not keep its principal from getting another. A bearer that was handed over before a failure is
/// nobody's ([`IssueError::NotGranted`]), but see [`StoreError::Sync`].
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
    hand_over: impl FnOnce(NativeBearer, &Grant) -> Result<(), E>,
) -> Result<Grant, E> {
    let (bearer, grant, replacement) = prepare(path, principal, life, now, random)?;
    hand_over(bearer, &grant)?;
    match replacement.commit() {
        Ok(()) => Ok(grant),
        Err(error @ StoreError::Sync { .. }) => Err(IssueError::Store(error).into()),
        Err(error) => Err(IssueError::NotGranted(error).into()),
    }
}

/// The grant that is to be revoked.
#[derive(Clone, Debug)]
pub enum WhichGrant {
    /// The one of the bearer with this id.
    Id(BearerId),
    /// The active one of this principal.
    Active {
        /// What its bearer is for.
        scope: Scope,
        /// The Site.
        site: SiteId,
    },
}

/// A revoked grant.
#[derive(Clone, Debug)]
pub struct Revoked {
    /// The grant, with the time.
    pub grant: Grant,
    /// Whether this call revoked it. Else it was revoked before, and nothing was changed.
    pub new: bool,
}

/// Why nothing was revoked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RevokeError {
    /// No grant has this id.
    #[error("no grant has the id {0}")]
    Unknown(BearerId),
    /// The principal has no grant that is active or was revoked.
    #[error("{0} has no grant to revoke")]
    NoGrant(String),
    /// The file could not be read or changed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Revokes a grant of the file at `path`, at `now` in whole seconds. It waits for another change
/// that is under way.
///
/// Doing it again changes nothing and answers with the first time. A principal without an active
/// grant is answered with its last revoked one; a grant that has only expired is revoked by its id
/// alone.
///
/// # Errors
///
/// [`RevokeError`]; the file is as it was, but see [`StoreError::Sync`].
pub fn revoke(path: &Path, which: &WhichGrant, now: DateTime<Utc>) -> Result<Revoked, RevokeError> {
    let path = resolved(path)?;
    let lock = lock(&path)?;
    let (mut grants, old) = read_if_there(&path, now)?;
    let id = match which {
        WhichGrant::Id(id) => id.clone(),
        WhichGrant::Active { scope, site } => {
            let name = format!("{scope}@{site}");
            let theirs = |grant: &&Grant| grant.principal().to_string() == name;
            let active = grants.iter().filter(theirs).find(|grant| grant.is_active(now));
            let revoked = grants.iter().filter(theirs).filter(|grant| grant.revoked_at().is_some());
            let found = active.or_else(|| revoked.max_by_key(|grant| grant.revoked_at()));
            found.map(|grant| grant.id().clone()).ok_or(RevokeError::NoGrant(name))?
        }
    };
    let grant = grants.by_id_mut(&id).ok_or(RevokeError::Unknown(id))?;
    if grant.revoked_at().is_some() {
        return Ok(Revoked { grant: grant.clone(), new: false });
    }
    grant.revoke(now.trunc_subsecs(0));
    let grant = grant.clone();
    let text = grants.to_json();
    parse(&path, &text, now)?;
    Replacement::prepare(path, lock, &text, old.as_ref())?.commit()?;
    Ok(Revoked { grant, new: true })
}

/// The grants of the file at `path`, as they are valid at `now`.
///
/// # Errors
///
/// [`StoreError::Read`] where there is none, [`StoreError::Invalid`] where it breaks a rule.
pub fn read(path: &Path, now: DateTime<Utc>) -> Result<Grants, StoreError> {
    match read_if_there(path, now)? {
        (grants, Some(_)) => Ok(grants),
        (_, None) => {
            let source = io::Error::from(io::ErrorKind::NotFound);
            Err(StoreError::Read { path: path.to_owned(), source })
        }
    }
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
    let (mut grants, old) = read_if_there(&path, now)?;
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

fn expiry(issued_at: DateTime<Utc>, life: Duration) -> Option<DateTime<Utc>> {
    if life.as_secs() == 0 {
        return None;
    }
    let life = TimeDelta::try_seconds(i64::try_from(life.as_secs()).ok()?)?;
    issued_at.checked_add_signed(life)
}

/// The grants, and what the system knows of their file where there is one.
fn read_if_there(
    path: &Path,
    now: DateTime<Utc>,
) -> Result<(Grants, Option<Metadata>), StoreError> {
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
