//! Why a folder is not used.

use std::{io, path::PathBuf};

/// Why a folder is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// It is not there, is no folder, or a link stands in its place.
    #[error("{} can't be opened as a folder that is not a link", .path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// What failed.
        #[source]
        source: io::Error,
    },
    /// It is another user's: that one could put a file in it.
    #[error("{} belongs to the user {found} and not to {expected}", .path.display())]
    Owner {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        found: u32,
        /// Whose it has to be.
        expected: u32,
    },
    /// Others have rights to it that nobody needs.
    #[error("{} has the mode {mode:04o}: at most 0755 is allowed", .path.display())]
    Mode {
        /// The folder.
        path: PathBuf,
        /// Its rights.
        mode: u32,
    },
    /// Another agent writes into it.
    #[error("another agent uses the folder {}", .0.display())]
    InUse(PathBuf),
    /// It can't be locked or read.
    #[error("the folder {} can't be used", .path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What failed.
        #[source]
        source: io::Error,
    },
}
