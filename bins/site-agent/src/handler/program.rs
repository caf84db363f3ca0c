//! Finding the handler's program when the agent starts.

use std::{
    ffi::OsStr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Why a program can't be a handler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProgramError {
    /// There is no such file, or none on the `PATH`.
    #[error("the handler {0:?} does not exist")]
    Missing(PathBuf),
    /// There is one, but it can't be executed.
    #[error("the handler {0:?} is not an executable file")]
    NotExecutable(PathBuf),
}

/// The absolute path of a program: as it stands when it holds a slash, else looked up on `path`.
pub(crate) fn find_program(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, ProgramError> {
    let as_given = PathBuf::from(name);
    let found = if as_given.components().count() > 1 || as_given.is_absolute() {
        executable(&as_given).map(|()| as_given)
    } else {
        let folders = path.map(std::env::split_paths).into_iter().flatten();
        let mut candidates = folders.map(|folder| folder.join(name));
        candidates
            .find(|candidate| executable(candidate).is_ok())
            .ok_or(ProgramError::Missing(as_given))
    };
    found.and_then(|program| {
        std::path::absolute(&program).map_err(|_| ProgramError::Missing(program))
    })
}

fn executable(path: &Path) -> Result<(), ProgramError> {
    let metadata = path.metadata().map_err(|_| ProgramError::Missing(path.to_owned()))?;
    if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
        Ok(())
    } else {
        Err(ProgramError::NotExecutable(path.to_owned()))
    }
}
