//! The file into which a handler may write a private output.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::answer::Answer;

/// The variable that tells the handler where the file would be.
pub(super) const VARIABLE: &str = "SITE_AGENT_OUTPUT_FILE";

/// The file, in the state folder.
pub(super) struct PrivateOutput {
    path: PathBuf,
    max_bytes: u64,
}

impl PrivateOutput {
    /// The file of the next try, which is not there yet: what an earlier try left is removed.
    pub(super) fn fresh(state_folder: &Path, max_bytes: u64) -> io::Result<Self> {
        let path = std::path::absolute(state_folder.join("output"))?;
        remove(&path)?;
        Ok(Self { path, max_bytes })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds what the handler has written to its answer. An empty file is none; one that can't be taken makes the answer a failure.
    pub(super) fn add_to(self, answer: Answer) -> Answer {
        let max_bytes = self.max_bytes;
        match self.read() {
            Ok(bytes) if bytes.is_empty() => answer,
            Ok(bytes) if bytes.len() as u64 > max_bytes => {
                let detail =
                    format!("The handler's private output is larger than {max_bytes} bytes.");
                answer.into_failed(detail)
            }
            Ok(bytes) => answer.with_private_output(bytes),
            Err(error) => {
                tracing::warn!(error = %error, "handler.private_output_not_read");
                answer.into_failed("The handler's private output can't be read.")
            }
        }
    }

    /// One byte more than the limit at the most.
    fn read(&self) -> io::Result<Vec<u8>> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
            // A pipe would keep us waiting, a link could lead anywhere.
            Ok(metadata) if !metadata.is_file() => return Err(io::Error::other("it is no file")),
            Ok(_) => {}
        }
        let mut bytes = Vec::new();
        File::open(&self.path)?.take(self.max_bytes + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for PrivateOutput {
    /// Also what is not wanted, or not taken, does not stay.
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(error = %error, "handler.private_output_not_removed");
        }
    }
}

/// Removes whatever a handler has put there: were it to stay, no other could be started.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
