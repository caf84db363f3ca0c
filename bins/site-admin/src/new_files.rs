//! Files of which a command makes all or none.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::Failure;

/// Files of this run, which go with the value unless they are kept. A run that is killed leaves
/// them; they are in the way of the next, which names them.
#[derive(Default)]
pub(crate) struct NewFiles(Vec<PathBuf>);

impl NewFiles {
    /// Writes a file that must not be there yet, with its name to the disk. A link that leads
    /// nowhere counts as there.
    pub(crate) fn write(&mut self, path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
        self.try_write(path, text, mode).map_err(|error| cannot(path, &error))
    }

    /// Keeps what was written so far.
    pub(crate) fn keep(&mut self) {
        self.0.clear();
    }

    fn try_write(&mut self, path: &Path, text: &str, mode: u32) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
        self.0.push(path.to_owned());
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        sync_folder_of(path)
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for file in &self.0 {
            // One that stays is in the way of the next run, which names it.
            let _ = fs::remove_file(file);
        }
    }
}

/// Makes a folder where there is none, with all above it, to the disk. An empty one is in nobody's
/// way, so it stays whatever comes after.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    try_make_folder(path).map_err(|error| cannot(path, &error))
}

fn try_make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        try_make_folder(above)?;
    }
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.and_then(|()| sync_folder_of(path)),
    }
}

/// Without this a crash of the machine may lose the name of what was made.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::cannot_create(format!("{}: {error}", path.display()))
}
