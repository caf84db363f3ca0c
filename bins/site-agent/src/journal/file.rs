//! The file of a journal: JSON lines, each synchronised before it counts.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Write},
    iter,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::Serialize;
use site_client::Origin;

use crate::state_folder::NO_LINK;

use super::{
    JournalError, Keep,
    record::{Header, Record},
    state::State,
};

/// How much longer than twice what was needed the file may be before the rest is dropped, in bytes.
/// So what compactions write together stays below what was appended.
const COMPACT_AFTER_BYTES: u64 = 1024 * 1024;

/// What is brought to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// Records at the end of the journal.
    Records,
    /// A new file.
    NewFile,
    /// The names in the folder.
    Names,
}

/// Returns when what was written is on disk. A test's notes when it is called, and may fail.
type Sync = Box<dyn FnMut(Written, &File) -> io::Result<()> + Send>;

/// An open journal file, at whose end records are added.
pub(super) struct JournalFile {
    folder: PathBuf,
    origin: Origin,
    file: File,
    /// Everything before this length is on disk and counts.
    good_length: u64,
    /// The length when it was last compacted.
    compact_length: u64,
    /// A failed write may have left bytes behind `good_length`.
    torn: bool,
    /// The folder may not yet name this file durably.
    unnamed: bool,
    sync: Sync,
}

impl JournalFile {
    /// Reads the journal of a folder, or starts one.
    pub(super) fn open(
        folder: &Path,
        origin: &Origin,
        keep: Keep,
    ) -> Result<(Self, State), JournalError> {
        Self::open_with(folder, origin, keep, Box::new(to_disk))
    }

    fn open_with(
        folder: &Path,
        origin: &Origin,
        keep: Keep,
        mut sync: Sync,
    ) -> Result<(Self, State), JournalError> {
        let failed = |source| JournalError::Io { path: folder.to_owned(), source };
        let path = folder.join("journal");
        let existing =
            match OpenOptions::new().read(true).append(true).custom_flags(NO_LINK).open(&path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(failed(error)),
            };
        let Some(file) = existing else {
            let state = State::new(keep);
            let (file, length) = write_anew(folder, origin, &state, &mut sync).map_err(failed)?;
            return Ok((Self::at(folder, origin, file, length, sync), state));
        };
        let (state, good_length) = replay(BufReader::new(&file), &path, origin, State::new(keep))?;
        if file.metadata().map_err(failed)?.len() > good_length {
            tracing::warn!(detail = "the unfinished last line is cut off", "journal.torn");
            file.set_len(good_length).map_err(failed)?;
        }
        // The last whole line counts from here on, also where the kill came before its sync.
        sync(Written::Records, &file).map_err(failed)?;
        let mut journal = Self::at(folder, origin, file, good_length, sync);
        journal.compact(&state);
        Ok((journal, state))
    }

    /// Adds a record and returns when it is on disk. After a failure the record does not count,
    /// and the next call first removes what was left of it.
    pub(super) fn append(&mut self, record: &Record) -> io::Result<()> {
        if self.unnamed {
            (self.sync)(Written::Names, &File::open(&self.folder)?)?;
            self.unnamed = false;
        }
        if self.torn {
            self.file.set_len(self.good_length)?;
            self.torn = false;
        }
        let line = line(record)?;
        self.torn = true;
        self.file.write_all(&line)?;
        (self.sync)(Written::Records, &self.file)?;
        self.torn = false;
        self.good_length += line.len() as u64;
        Ok(())
    }

    /// Drops what is no longer needed when the file is twice as long as after the last time, and
    /// 1 MiB more.
    pub(super) fn compact_when_large(&mut self, state: &State) {
        if self.good_length > 2 * self.compact_length + COMPACT_AFTER_BYTES {
            self.compact(state);
        }
    }

    /// Replaces the file by one that holds the state only. Where that fails (a full disk), the old
    /// file goes on: it is longer, not wrong.
    fn compact(&mut self, state: &State) {
        match write_anew(&self.folder, &self.origin, state, &mut self.sync) {
            Ok((file, length)) => {
                self.file = file;
                self.good_length = length;
                self.unnamed = true;
            }
            Err(error) => {
                tracing::warn!(
                    error = %error,
                    detail = "the old file stays in use",
                    "journal.not_compacted"
                );
            }
        }
        self.compact_length = self.good_length;
    }

    fn at(folder: &Path, origin: &Origin, file: File, length: u64, sync: Sync) -> Self {
        Self {
            folder: folder.to_owned(),
            origin: origin.clone(),
            file,
            good_length: length,
            compact_length: length,
            torn: false,
            unnamed: true,
            sync,
        }
    }
}

/// Writes a whole journal beside the old one and puts it in its place; gives it, open at its end,
/// and its length.
///
/// Until the folder is synchronised a crash may bring back either file, and both say the same;
/// the next record has to wait for it.
fn write_anew(
    folder: &Path,
    origin: &Origin,
    state: &State,
    sync: &mut Sync,
) -> io::Result<(File, u64)> {
    let beside = folder.join("journal.new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&beside)?;
    let mut writer = BufWriter::new(&file);
    let mut length = 0;
    let mut write = |line: Vec<u8>| {
        length += line.len() as u64;
        writer.write_all(&line)
    };
    for line in lines(origin, state) {
        write(line?)?;
    }
    writer.flush()?;
    drop(writer);
    sync(Written::NewFile, &file)?;
    fs::rename(&beside, folder.join("journal"))?;
    Ok((file, length))
}

/// The lines of a journal that says nothing but a state.
pub(super) fn lines(origin: &Origin, state: &State) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    let records = state.records().map(|record| line(&record));
    iter::once_with(|| line(&Header::new(origin))).chain(records)
}

/// Adds the lines up; gives the state and the length of the lines that count.
pub(super) fn replay(
    reader: impl BufRead,
    path: &Path,
    origin: &Origin,
    mut state: State,
) -> Result<(State, u64), JournalError> {
    let damaged = |line| JournalError::Damaged { path: path.to_owned(), line };
    let mut lines = Lines { reader, path, bytes: Vec::new() };
    let header = lines.next()?.ok_or_else(|| damaged(1))?;
    let mut length = header.len() as u64;
    let header: Header = serde_json::from_slice(header).map_err(|_| damaged(1))?;
    if !header.is_current() {
        return Err(damaged(1));
    }
    if header.origin != origin.as_str() {
        let expected = origin.to_string();
        return Err(JournalError::OtherOrigin { found: header.origin, expected });
    }
    let mut number = 1;
    while let Some(line) = lines.next()? {
        number += 1;
        let line_length = line.len() as u64;
        match serde_json::from_slice(line) {
            // Outputs without a name go when all lines are read.
            Ok(record) => drop(state.apply(record)),
            // A page of the last record that never reached the disk reads as zeros.
            Err(_) if line.contains(&0) && lines.next()?.is_none() => break,
            Err(_) => return Err(damaged(number)),
        }
        length += line_length;
    }
    Ok((state, length))
}

/// The lines of a file that end, with their line break.
struct Lines<'a, R> {
    reader: R,
    path: &'a Path,
    bytes: Vec<u8>,
}

impl<R: BufRead> Lines<'_, R> {
    fn next(&mut self) -> Result<Option<&[u8]>, JournalError> {
        self.bytes.clear();
        self.reader
            .read_until(b'\n', &mut self.bytes)
            .map_err(|source| JournalError::Io { path: self.path.to_owned(), source })?;
        Ok(self.bytes.ends_with(b"\n").then_some(&self.bytes))
    }
}

fn to_disk(written: Written, file: &File) -> io::Result<()> {
    match written {
        Written::Records => file.sync_data(),
        Written::NewFile | Written::Names => file.sync_all(),
    }
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests;
