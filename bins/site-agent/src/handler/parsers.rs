//! What a handler and the kernel say, read from bytes, for tests.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

use super::{answer, leftover, stat};

/// The result of a handler that exited with `code` after it wrote `output`, as the exact text that
/// is sent.
#[must_use]
pub fn result(code: u8, output: Vec<u8>) -> String {
    let status = ExitStatus::from_raw(i32::from(code) << 8);
    let output = Some(output).filter(|output| output.len() <= answer::MAX_OUTPUT_BYTES);
    answer::of_exit(status, output).text(None)
}

/// What `/proc/<id>/stat` says: the group, the session, the start, and whether the process works.
#[must_use]
pub fn process(text: &[u8]) -> Option<(i32, i32, u64, bool)> {
    stat::parse(text).map(|stat| (stat.group, stat.session, stat.start, stat.works))
}

/// The group that the note of a running handler names on `machine`, and the same note anew.
#[must_use]
pub fn note(text: &str, machine: &str) -> Option<(i32, String)> {
    leftover::parse(text, machine).map(|group| (group.id(), leftover::text(&group, machine)))
}
