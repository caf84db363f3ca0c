//! A volume as Kubernetes projects it into a Pod.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// A folder whose files are links through `..data`, which is a link to a folder with one version of
/// them all. A new version takes the old one's place in one moment.
#[derive(Clone, Debug)]
pub struct Projected(PathBuf);

impl Projected {
    /// A volume in a folder, which is made where it is not there.
    ///
    /// # Errors
    ///
    /// When the folder can't be used.
    pub fn at(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// The path of a file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Has it hold these files, each a name and a text, from a moment on. What stood under a name
    /// without being projected becomes a link; links to files that are no longer there stay.
    ///
    /// # Errors
    ///
    /// When the folder can't be written.
    pub fn swap(&self, files: &[(&str, &str)]) -> io::Result<()> {
        let version = tempfile::Builder::new().prefix("..version").tempdir_in(&self.0)?.keep();
        for (name, text) in files {
            fs::write(version.join(name), text)?;
        }
        let name = version.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let before = fs::read_link(self.file("..data")).ok();
        self.link(Path::new(name), "..data")?;
        for (name, _) in files {
            if !self.file(name).is_symlink() {
                self.link(&Path::new("..data").join(name), name)?;
            }
        }
        before.map_or(Ok(()), |before| fs::remove_dir_all(self.0.join(before)))
    }

    /// Puts a link in the place of what is there.
    fn link(&self, target: &Path, name: &str) -> io::Result<()> {
        let new = self.file("..new");
        symlink(target, &new)?;
        fs::rename(new, self.file(name))
    }
}
