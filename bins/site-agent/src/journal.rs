//! What the agent must not forget: its generation, where it is in the stream, which commands it has
//! started, each result until the Site API has acknowledged it, and for some time after that.
//!
//! A record is on disk before its method returns; nothing is sent that is not on disk. A method
//! that fails has changed nothing and may be called again. The journal knows nothing of the
//! network, and decides nothing: the loop in `runtime` does.

mod file;
mod kept;
mod outputs;
pub(crate) mod parsers;
mod record;
mod state;

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use site_client::{Origin, output_digest};
use site_protocol::{Command, Digest};

use crate::state_folder::make_and_lock;

use file::JournalFile;
use outputs::Outputs;
use record::Record;
use state::State;

pub(crate) use kept::Keep;
pub(crate) use record::OutputNote;
pub(crate) use state::{Cursor, Entry};

/// The journal of one state folder, locked against a second agent for as long as it is open.
pub(crate) struct Journal {
    file: JournalFile,
    state: State,
    outputs: Outputs,
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
    /// unfinished, and drops what is no longer needed or more than is to be kept.
    pub(crate) fn open(folder: &Path, origin: &Origin, keep: Keep) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io { path: folder.to_owned(), source };
        let lock = make_and_lock(folder).map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse(folder.to_owned()),
            TryLockError::Error(source) => failed(source),
        })?;
        let (file, state) = JournalFile::open(folder, origin, keep)?;
        let outputs = Outputs::in_folder(folder);
        outputs.forget_all_but(state.outputs());
        Ok(Self { file, state, outputs, _lock: lock })
    }

    /// The generation of the last session; `None` before the first.
    pub(crate) fn generation(&self) -> Option<u64> {
        self.state.generation
    }

    /// The last command that has its ending; `None` before the agent knows its place.
    pub(crate) fn cursor(&self) -> Option<Cursor> {
        self.state.cursor
    }

    /// What is known of a command: it is under way, or its result is still kept.
    pub(crate) fn entry(&self, command_id: &str) -> Option<&Entry> {
        self.state.entry(command_id)
    }

    /// Whether the handler was run for a command whose result is not here.
    pub(crate) fn has_try_without_result(&self) -> bool {
        self.state.open.values().any(|entry| entry.tries > 0 && entry.result.is_none())
    }

    /// Records the generation of an opened session.
    pub(crate) fn adopt(&mut self, generation: u64) -> io::Result<()> {
        self.append(Record::Generation { generation })
    }

    /// Records where the work begins.
    pub(crate) fn begin_after(&mut self, cursor: Cursor) -> io::Result<()> {
        self.append(Record::Cursor { seq: cursor.seq, chain_digest: cursor.chain_digest })
    }

    /// Records that the handler is about to be run; gives which try it is, from 1.
    pub(crate) fn start(&mut self, command: &Command) -> io::Result<u32> {
        let known = self.entry(&command.command_id);
        let same = known.filter(|entry| entry.digest == command.digest);
        let tries = same.map_or(0, |entry| entry.tries);
        let try_number = tries.saturating_add(1);
        self.append(Record::Started {
            seq: command.seq,
            command_id: command.command_id.clone(),
            digest: command.digest,
            try_number,
        })?;
        Ok(try_number)
    }

    /// Keeps a private output; from then on a result may name it.
    pub(crate) fn keep_output(&self, output: &[u8]) -> io::Result<OutputNote> {
        let note = OutputNote { digest: output_digest(output), bytes: output.len() as u64 };
        self.outputs.keep(note.digest, output)?;
        Ok(note)
    }

    /// The bytes of a private output that a result names.
    ///
    /// # Errors
    ///
    /// Also when somebody has changed them.
    pub(crate) fn output(&self, note: OutputNote) -> io::Result<Vec<u8>> {
        self.outputs.read(note.digest)
    }

    /// Records a result: from now on these bytes are the command's only answer.
    pub(crate) fn finish(
        &mut self,
        command: &Command,
        result: &str,
        output: Option<OutputNote>,
    ) -> io::Result<()> {
        self.append(Record::Finished {
            seq: command.seq,
            command_id: command.command_id.clone(),
            digest: command.digest,
            result: result.to_owned(),
            output,
        })
    }

    /// Records that the command has its ending, and moves the cursor to it. A result of it is kept.
    pub(crate) fn receive(&mut self, command: &Command, chain_digest: Digest) -> io::Result<()> {
        self.append(Record::Received {
            seq: command.seq,
            command_id: command.command_id.clone(),
            chain_digest,
        })
    }

    fn append(&mut self, record: Record) -> io::Result<()> {
        self.file.append(&record)?;
        for dropped in self.state.apply(record) {
            if self.state.outputs().all(|named| named != dropped) {
                self.outputs.forget(dropped);
            }
        }
        self.file.compact_when_large(&self.state);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
