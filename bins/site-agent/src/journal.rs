//! What the agent must not forget: where it is in the stream, which commands it has started, and
//! each result until the Site API has acknowledged it.
//!
//! A record is on disk before its method returns; nothing is sent that is not on disk. A method
//! that fails has changed nothing and may be called again. The journal knows nothing of the
//! network, and decides nothing: the loop in `runtime` does.

mod file;
mod folder;
mod record;

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use site_client::Origin;
use site_protocol::{Command, Digest};

use file::JournalFile;
use folder::make_folder;
use record::{Record, State};

pub(crate) use record::{Cursor, Entry};

/// The journal of one state folder, locked against a second agent for as long as it is open.
pub(crate) struct Journal {
    file: JournalFile,
    state: State,
    _lock: File,
}

/// Why a journal can't be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
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
    /// The journal was written for another Site API.
    #[error("the journal belongs to {found}, not to {expected}: use another state folder")]
    OtherOrigin {
        /// The origin in the journal.
        found: String,
        /// The origin of this agent.
        expected: String,
    },
    /// A line before the last can't be read: the file was damaged, not cut short by a kill.
    #[error("line {line} of the journal {} is damaged", .path.display())]
    Damaged {
        /// The journal file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

impl Journal {
    /// Opens the journal of a state folder, or starts one. Cuts off a last line that a kill left
    /// unfinished, and drops what is no longer needed.
    pub(crate) fn open(folder: &Path, origin: &Origin) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io { path: folder.to_owned(), source };
        make_folder(folder).map_err(failed)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(folder.join("lock"))
            .map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse(folder.to_owned()),
            TryLockError::Error(source) => failed(source),
        })?;
        let (file, state) = JournalFile::open(folder, origin)?;
        Ok(Self { file, state, _lock: lock })
    }

    /// The last command whose receipt is here; `None` before the agent knows its place.
    pub(crate) fn cursor(&self) -> Option<Cursor> {
        self.state.cursor
    }

    /// What is known of a command without a receipt.
    pub(crate) fn entry(&self, command_id: &str) -> Option<&Entry> {
        self.state.open.get(command_id)
    }

    /// Whether the handler was run for a command whose result is not here.
    pub(crate) fn has_try_without_result(&self) -> bool {
        self.state.open.values().any(|entry| entry.tries > 0 && entry.result.is_none())
    }

    /// Records where the work begins.
    pub(crate) fn begin_after(&mut self, cursor: Cursor) -> io::Result<()> {
        self.append(Record::Cursor { seq: cursor.seq, chain_digest: cursor.chain_digest })
    }

    /// Records that the handler is about to be run; gives which try it is, from 1.
    pub(crate) fn start(&mut self, command: &Command) -> io::Result<u32> {
        let tries = self.entry(&command.command_id).map_or(0, |entry| entry.tries);
        let try_number = tries.saturating_add(1);
        self.append(Record::Started {
            seq: command.seq,
            command_id: command.command_id.clone(),
            digest: command.digest,
            try_number,
        })?;
        Ok(try_number)
    }

    /// Records a result: from now on these bytes are the command's only answer.
    pub(crate) fn finish(&mut self, command: &Command, result: &str) -> io::Result<()> {
        self.append(Record::Finished {
            seq: command.seq,
            command_id: command.command_id.clone(),
            digest: command.digest,
            result: result.to_owned(),
        })
    }

    /// Records that the Site API has the result, and moves the cursor to the command.
    pub(crate) fn receive(&mut self, command: &Command, chain_digest: Digest) -> io::Result<()> {
        self.append(Record::Received {
            seq: command.seq,
            command_id: command.command_id.clone(),
            chain_digest,
        })
    }

    fn append(&mut self, record: Record) -> io::Result<()> {
        self.file.append(&record)?;
        self.state.apply(record);
        self.file.compact_when_large(&self.state);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
