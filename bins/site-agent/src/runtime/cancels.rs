//! Which commands somebody wants to end early.

use std::collections::BTreeSet;

use site_protocol::CommandPage;

/// The marks of a stream that were told so far.
#[derive(Debug, Default)]
pub(super) struct Cancels {
    rev: u64,
    command_ids: BTreeSet<String>,
}

impl Cancels {
    /// What to present, so that only newer marks are told.
    pub(super) fn rev(&self) -> u64 {
        self.rev
    }

    pub(super) fn has(&self, command_id: &str) -> bool {
        self.command_ids.contains(command_id)
    }

    pub(super) fn learn(&mut self, page: &CommandPage) {
        self.rev = page.cancel_rev;
        self.command_ids.extend(page.cancelled.iter().map(|mark| mark.command_id.clone()));
    }

    /// The command has its ending.
    pub(super) fn forget(&mut self, command_id: &str) {
        self.command_ids.remove(command_id);
    }
}
