//! What was seen in the storm, and what is claimed of it.

use std::{collections::BTreeMap, time::Duration};

use super::storm::{Fault, ROUND};
use crate::{claim::Claim, ssh_site::WINDOW};

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Sights {
    pub(super) faults: BTreeMap<Fault, u32>,
    pub(super) let_in: u64,
    pub(super) refused: u64,
    pub(super) longest_removal: Duration,
    pub(super) longest_recovery: Duration,
    /// Everything was looked at so often after something ended.
    pub(super) calls: u64,
    pub(super) wrong: Vec<String>,
    pub(super) unsettled: Vec<String>,
    /// Comparisons of the acknowledged place with the files, and those that fell out wrong.
    pub(super) compared: u64,
    pub(super) behind: Vec<String>,
    pub(super) ended: Vec<String>,
}

impl Sights {
    /// What is claimed of it.
    pub(super) fn claims(&self, changes: u64) -> Vec<Claim> {
        let mut claims: Vec<_> = ROUND
            .iter()
            .map(|fault| {
                let times = self.faults.get(fault).copied().unwrap_or_default();
                Claim::new(format!("fault: {}", fault.name()), format!("{times} x"), times > 0)
            })
            .collect();
        let Self { let_in, refused, calls, .. } = self;
        let longest = self.longest_recovery.as_secs_f64();
        let figure = format!("{changes} changes; within {longest:.1} s each of {calls} times");
        let settled = self.unsettled.is_empty() && *calls > 0;
        claims.push(Claim::new(
            "after each fault the files become what is in force",
            figure,
            settled,
        ));
        let removal = self.longest_removal.as_secs_f64();
        let figure = format!(
            "{let_in} let in, {refused} refused, {} wrong; {removal:.1} s from a removal at the most",
            self.wrong.len()
        );
        let is_right = self.wrong.is_empty() && *let_in > 0 && *refused > 0;
        let in_time = self.longest_removal <= WINDOW;
        claims.push(Claim::new(
            "after each fault everything in force lets in, and nothing else",
            figure,
            is_right && in_time,
        ));
        let figure = format!("{} compared, {} behind", self.compared, self.behind.len());
        let is_true = self.behind.is_empty() && self.compared > 0;
        claims.push(Claim::new("what was acknowledged is in the files", figure, is_true));
        claims
    }

    /// What broke a promise, for people.
    pub(super) fn violations(&self) -> impl Iterator<Item = &String> {
        self.unsettled.iter().chain(&self.wrong).chain(&self.behind).chain(&self.ended)
    }
}
