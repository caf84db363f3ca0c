//! A note of the running handler, for the agent that comes after a kill.
//!
//! A handler outlives an agent that is killed. The next agent finds it by this note and ends it
//! before it runs the command again. The note is written before the handler gets its command, so
//! a handler that reads its input can't have begun without one. It names the process by id, start
//! time and boot, so that a later process with the same id is left alone.

use std::{fs, io, path::Path, path::PathBuf, time::Duration};

use rustix::process::Signal;

use super::group::Group;

/// How often a group that was told to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The note, in the state folder.
pub(super) struct Leftover(PathBuf);

impl Leftover {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(folder.join("handler"))
    }

    /// Notes that the handler which leads `group` runs; one that has ended already needs no note.
    /// Not synchronised: after a power cut there is no handler either.
    pub(super) fn note(&self, group: Group) -> io::Result<()> {
        match start_time(group)? {
            Some(start) => fs::write(&self.0, format!("{} {start} {}\n", group.id(), boot_id()?)),
            None => Ok(()),
        }
    }

    /// Removes the note: the handler has ended.
    pub(super) fn forget(&self) {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(error = %error, "handler.note_not_removed");
            }
            _ => {}
        }
    }

    /// Ends the handler that the note names, if it still runs: SIGTERM, SIGKILL after `grace`.
    pub(super) async fn end(&self, grace: Duration) -> io::Result<()> {
        let note = match fs::read_to_string(&self.0) {
            Ok(note) => note,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some((group, start)) = parse(&note, &boot_id()?) {
            let lives = || start_time(group).map(|now| now.as_deref() == Some(start));
            if lives()? {
                tracing::warn!(
                    process.id = group.id(),
                    detail = "a killed agent's handler is being ended",
                    "handler.leftover"
                );
                group.send(Signal::TERM);
                let patience = tokio::time::Instant::now() + grace;
                while lives()? && tokio::time::Instant::now() < patience {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                group.send(Signal::KILL);
                while lives()? {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
        }
        fs::remove_file(&self.0)
    }
}

/// The group and its leader's start time, if the note is of this boot. A note that a kill cut
/// short names nobody: its handler never got a command.
fn parse<'a>(note: &'a str, boot: &str) -> Option<(Group, &'a str)> {
    let mut words = note.strip_suffix('\n')?.split(' ');
    let group = Group::from_id(words.next()?.parse().ok()?)?;
    let start = words.next()?;
    (words.next()? == boot).then_some((group, start))
}

/// When the leader was started, in the kernel's ticks since boot; `None` when it is gone, which a
/// zombie is too.
pub(super) fn start_time(group: Group) -> io::Result<Option<String>> {
    let stat = match fs::read_to_string(format!("/proc/{}/stat", group.id())) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The process ended while its file was read.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    // proc(5): the name, in parentheses, may hold anything; state is field 3, start time field 22.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let state = fields.next();
    Ok(fields.nth(18).filter(|_| !matches!(state, Some("Z" | "X"))).map(str::to_owned))
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}
