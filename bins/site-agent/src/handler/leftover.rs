//! A note of the running handler, for the agent that comes after a kill.
//!
//! A handler, or a process that it started, outlives an agent that is killed. The next agent finds
//! the group by this note and ends it before it runs the command again. The note is written before
//! the handler gets its command, so a handler that reads its input can't have begun without one,
//! and it stays until the result is on disk. It names the group in a way that leaves a later group
//! with the same number alone.

use std::{fs, io, path::Path, path::PathBuf, time::Duration};

use super::group::Group;

/// The note, in the state folder.
pub(super) struct Leftover(PathBuf);

impl Leftover {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(folder.join("handler"))
    }

    /// Notes that a handler runs. Not synchronised: after a power cut there is no handler either.
    pub(super) fn note(&self, group: &Group) -> io::Result<()> {
        fs::write(&self.0, text(group, &machine()?))
    }

    /// Removes the note: the handler has ended, or what it left is not to be ended.
    pub(super) fn forget(&self) {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(error = %error, "handler.note_not_removed");
            }
            _ => {}
        }
    }

    /// Ends the group that the note names, whoever of it still works: SIGTERM, SIGKILL after
    /// `grace`.
    ///
    /// # Errors
    ///
    /// When the note can't be read, or the group not observed or ended; then the note stays.
    pub(super) async fn end(&self, grace: Duration) -> io::Result<()> {
        let note = match fs::read_to_string(&self.0) {
            Ok(note) => note,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(group) = parse(&note, &machine()?) {
            if group.works()? {
                tracing::warn!(
                    process.id = group.id(),
                    detail = "what is left of a try that was cut short is being ended",
                    "handler.leftover"
                );
            }
            group.end(grace, std::future::pending()).await?;
        }
        fs::remove_file(&self.0)
    }
}

pub(super) fn text(group: &Group, machine: &str) -> String {
    let (id, session, start) = (group.id(), group.session(), group.leader_start());
    format!("{id} {session} {start} {machine}\n")
}

/// The group, if the note is of this machine. A note that a kill cut short names nobody: its
/// handler never got a command.
pub(super) fn parse(note: &str, machine: &str) -> Option<Group> {
    let mut words = note.strip_suffix('\n')?.splitn(4, ' ');
    let (id, session, start) = (words.next()?, words.next()?, words.next()?);
    if words.next()? != machine {
        return None;
    }
    Group::new(id.parse().ok()?, session.parse().ok()?, start.parse().ok()?)
}

/// Where process ids mean the same: this boot, and in it this name space of ids.
fn machine() -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let ids = fs::read_link("/proc/self/ns/pid")?;
    Ok(format!("{} {}", boot.trim(), ids.display()))
}

#[cfg(test)]
mod tests;
