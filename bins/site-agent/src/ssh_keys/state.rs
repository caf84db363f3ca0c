//! What the agent must not forget beside the files: where it is in the feed, under which lease the
//! files were written, and what could not be applied.
//!
//! A state is written after the files that it speaks of are durable, so the files are as it says or
//! newer. Changes that are applied to newer files once more come to the same.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use site_client::{Origin, SshCursor};

use super::failures::{Failures, KeptFailure};
use crate::state_folder::{NO_LINK, make_and_lock};

/// The state of one folder, locked against a second agent for as long as it is open.
pub(crate) struct StateFile {
    folder: PathBuf,
    origin: Origin,
    _lock: File,
}

/// Where the agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The place up to which the files have everything but the failures.
    pub(super) cursor: SshCursor,
    /// The last lease that was read at the head of the feed: what is in force there and at every
    /// place since may be used until then.
    pub(super) lease: DateTime<Utc>,
    /// A moment until which every file is good at least.
    pub(super) files_until: DateTime<Utc>,
    /// What could not be applied.
    pub(super) failures: Failures,
}

/// Why a state can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// Another process holds the folder's lock.
    #[error("another agent uses the state folder {}", .0.display())]
    InUse(PathBuf),
    /// The folder or a file in it can't be made, read or written.
    #[error("the state folder {} can't be used", .path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What failed.
        #[source]
        source: io::Error,
    },
    /// The state was written for another Site API.
    #[error("the state belongs to {found}, not to {expected}: use another state folder")]
    OtherOrigin {
        /// The origin in the state.
        found: String,
        /// The origin of this agent.
        expected: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    /// The version of the form.
    ssh_keys: u32,
    origin: String,
    cursor: String,
    lease: DateTime<Utc>,
    files_until: DateTime<Utc>,
    #[serde(default)]
    failures: Vec<KeptFailure>,
    #[serde(default)]
    more_failures: bool,
}

const VERSION: u32 = 1;
const NAME: &str = "ssh-keys";

impl StateFile {
    /// Opens the state of a folder. Where there is none, or one that can't be read, the position is
    /// `None`: a snapshot gives another.
    pub(crate) fn open(
        folder: &Path,
        origin: &Origin,
    ) -> Result<(Self, Option<Position>), StateError> {
        let failed = |source| StateError::Io { path: folder.to_owned(), source };
        let lock = make_and_lock(folder).map_err(|error| match error {
            TryLockError::WouldBlock => StateError::InUse(folder.to_owned()),
            TryLockError::Error(source) => failed(source),
        })?;
        let file = Self { folder: folder.to_owned(), origin: origin.clone(), _lock: lock };
        let bytes = match fs::read(folder.join(NAME)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((file, None)),
            Err(error) => return Err(failed(error)),
        };
        let position = parse(&bytes, origin)?;
        if position.is_none() {
            tracing::error!(
                alarm.name = "ssh_state_damaged",
                detail = "the state can't be read: a snapshot takes its place",
                "ssh_keys.state_damaged"
            );
        }
        Ok((file, position))
    }

    /// Keeps a position; returns when it is on disk. After a failure the one before it may be there
    /// or this one.
    pub(super) fn keep(&self, position: &Position) -> io::Result<()> {
        self.keep_by(position, &mut File::sync_all)
    }

    fn keep_by(
        &self,
        position: &Position,
        sync: &mut impl FnMut(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        let beside = self.folder.join(format!("{NAME}.new"));
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(NO_LINK)
            .open(&beside)?;
        file.write_all(&text(position, &self.origin)?)?;
        sync(&file)?;
        fs::rename(&beside, self.folder.join(NAME))?;
        sync(&File::open(&self.folder)?)
    }
}

/// A state as it is kept.
pub(super) fn text(position: &Position, origin: &Origin) -> io::Result<Vec<u8>> {
    let Position { cursor, lease, files_until, failures } = position;
    let (failures, more_failures) = failures.kept();
    let kept = Kept {
        ssh_keys: VERSION,
        origin: origin.as_str().to_owned(),
        cursor: cursor.to_string(),
        lease: *lease,
        files_until: *files_until,
        failures,
        more_failures,
    };
    let mut text = serde_json::to_vec(&kept)?;
    text.push(b'\n');
    Ok(text)
}

/// Takes a state; `None` where it can't be read.
pub(super) fn parse(bytes: &[u8], origin: &Origin) -> Result<Option<Position>, StateError> {
    let Ok(kept) = serde_json::from_slice::<Kept>(bytes) else { return Ok(None) };
    if kept.ssh_keys != VERSION {
        return Ok(None);
    }
    if kept.origin != origin.as_str() {
        let expected = origin.to_string();
        return Err(StateError::OtherOrigin { found: kept.origin, expected });
    }
    let failures = Failures::from_kept((kept.failures, kept.more_failures));
    let cursor = kept.cursor.parse().ok();
    Ok(cursor.zip(failures).map(|(cursor, failures)| Position {
        cursor,
        lease: kept.lease,
        files_until: kept.files_until,
        failures,
    }))
}

#[cfg(test)]
mod tests {
    use super::{super::failures::Again, *};
    use std::os::unix::fs::PermissionsExt;

    fn origin() -> Origin {
        Origin::parse("https://site.example").unwrap()
    }

    fn position(seq: u64) -> Position {
        let cursor = format!("{seq}.{}", "ab".repeat(32)).parse().unwrap();
        let mut failures = Failures::default();
        failures.note("alice", "key", "reason", Again::Remove);
        let (lease, files_until) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH);
        Position { cursor, lease, files_until, failures }
    }

    #[test]
    fn a_position_is_read_as_it_was_kept_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let (file, none) = StateFile::open(&state, &origin()).unwrap();
        assert_eq!(none, None);
        file.keep(&position(1)).unwrap();
        file.keep(&position(2)).unwrap();
        drop(file);
        assert_eq!(StateFile::open(&state, &origin()).unwrap().1, Some(position(2)));
        let mode = fs::metadata(state.join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_state_is_whole_on_the_disk_before_it_has_its_name_and_has_it_there_when_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = StateFile::open(folder.path(), &origin()).unwrap();
        file.keep(&position(1)).unwrap();
        let next = text(&position(2), &origin()).unwrap();
        let mut seen = Vec::new();
        let mut look = |synced: &File| {
            let held = fs::read(folder.path().join(NAME)).unwrap();
            let metadata = synced.metadata().unwrap();
            seen.push((metadata.is_dir(), metadata.len() == next.len() as u64, held == next));
            Ok(())
        };
        file.keep_by(&position(2), &mut look).unwrap();
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert_eq!(seen[0], (false, true, false), "the file, whole, under another name");
        assert!(seen[1].0 && seen[1].2, "then the folder, with its name in it: {seen:?}");
        // What is not on the disk does not get the name.
        let broken = &mut |_: &File| Err(io::Error::other("the disk is gone"));
        file.keep_by(&position(3), broken).unwrap_err();
        assert_eq!(fs::read(folder.path().join(NAME)).unwrap(), next);
    }

    #[test]
    fn a_link_beside_the_state_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = StateFile::open(folder.path(), &origin()).unwrap();
        let target = folder.path().join("target");
        fs::write(&target, "theirs").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("ssh-keys.new")).unwrap();
        file.keep(&position(1)).unwrap_err();
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
    }

    #[test]
    fn a_second_agent_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let _first = StateFile::open(folder.path(), &origin()).unwrap();
        let second = StateFile::open(folder.path(), &origin());
        assert!(matches!(second, Err(StateError::InUse(_))));
    }

    #[test]
    fn the_state_of_another_site_api_is_refused_and_a_damaged_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let other = Origin::parse("https://other.example").unwrap();
        let keep = |bytes: &[u8]| fs::write(folder.path().join(NAME), bytes).unwrap();
        keep(&text(&position(1), &other).unwrap());
        let refused = StateFile::open(folder.path(), &origin());
        assert!(matches!(refused, Err(StateError::OtherOrigin { .. })));
        let whole = text(&position(1), &origin()).unwrap();
        for length in 0..whole.len() - 1 {
            keep(&whole[..length]);
            assert_eq!(StateFile::open(folder.path(), &origin()).unwrap().1, None, "{length}");
        }
        let newer = String::from_utf8(whole).unwrap().replace("\"sshKeys\":1", "\"sshKeys\":2");
        keep(newer.as_bytes());
        assert_eq!(StateFile::open(folder.path(), &origin()).unwrap().1, None);
    }
}
