//! The floor of the files: the same names and bytes, written and renamed by plain calls in this process.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::Path,
    time::{Duration, Instant},
};

use rustix::fs::syncfs;

/// Files that are made durable together, as many as the agent does.
const BATCH: usize = 256;

/// Writes files in a new folder as durably as the agent does, and returns how long that took. In
/// batches: each file under another name, `syncfs` once, `fsync` of each file, the renames, `fsync` of
/// the folder.
pub(super) fn durably(folder: &Path, files: &BTreeMap<String, String>) -> io::Result<Duration> {
    fs::create_dir(folder)?;
    let directory = File::open(folder)?;
    let files: Vec<_> = files.iter().collect();
    let begun = Instant::now();
    for batch in files.chunks(BATCH) {
        let written = batch.iter().map(|(user, text)| {
            let beside = folder.join(format!(".{user}"));
            let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
            file.write_all(text.as_bytes())?;
            Ok((beside, file, user))
        });
        let written = written.collect::<io::Result<Vec<_>>>()?;
        syncfs(&directory)?;
        written.iter().try_for_each(|(_, file, _)| file.sync_all())?;
        for (beside, _, user) in &written {
            fs::rename(beside, folder.join(user))?;
        }
        directory.sync_all()?;
    }
    Ok(begun.elapsed())
}

/// Writes the same files in a new folder, in their places, with nothing that makes them durable.
pub(super) fn plainly(folder: &Path, files: &BTreeMap<String, String>) -> io::Result<Duration> {
    fs::create_dir(folder)?;
    let begun = Instant::now();
    for (user, text) in files {
        fs::write(folder.join(user), text)?;
    }
    Ok(begun.elapsed())
}

/// Writes and removes one file durably, and returns how long each took: as the agent does with one, with
/// `fsync` of the file and of the folder.
pub(super) fn one(folder: &Path, text: &str) -> io::Result<(Duration, Duration)> {
    let directory = File::open(folder)?;
    let (beside, place) = (folder.join(".one"), folder.join("one"));
    let begun = Instant::now();
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, &place)?;
    directory.sync_all()?;
    let written = begun.elapsed();
    let begun = Instant::now();
    fs::remove_file(&place)?;
    directory.sync_all()?;
    Ok((written, begun.elapsed()))
}
