//! What a restored database takes back.
//!
//! A restore cuts the lane's time into parts. What was told in one part holds for the rest of it. What
//! was told before the backup began is in the backup, so it holds beyond the restore too. What was told
//! between the backup and the restore may be gone: whoever was told it has to bring it again.

use crate::qualify::commands::history::{Moment, Restore};

/// The restores in their order.
pub(super) struct Timeline(Vec<Restore>);

impl Timeline {
    pub(super) fn of(restores: &[Restore]) -> Self {
        let mut restores = restores.to_vec();
        restores.sort_by_key(|restore| restore.restore_began);
        Self(restores)
    }

    /// The part of the time that a span lies in, from 0; none where a restore falls into it, so that
    /// it belongs to the history before or to the one after.
    pub(super) fn part(&self, began: Moment, ended: Moment) -> Option<usize> {
        (!self.between(began, ended)).then(|| self.parts_before(began))
    }

    /// Whether a restore falls into a span.
    pub(super) fn between(&self, began: Moment, ended: Moment) -> bool {
        self.0.iter().any(|r| r.restore_ended >= began && r.restore_began <= ended)
    }

    /// Whether what was told in a span still holds at a later moment, whatever was restored.
    pub(super) fn holds(&self, began: Moment, ended: Moment, until: Moment) -> bool {
        self.0
            .iter()
            .all(|r| r.restore_ended < began || r.restore_began > until || ended < r.backup_began)
    }

    /// Whether what was told in a span holds to the end.
    pub(super) fn holds_for_ever(&self, began: Moment, ended: Moment) -> bool {
        self.holds(began, ended, Moment::MAX)
    }

    /// How many parts there are.
    pub(super) fn parts(&self) -> usize {
        self.0.len() + 1
    }

    /// Of something that was told in `part` and ended then: the last part in which it holds.
    pub(super) fn holds_up_to_part(&self, part: usize, ended: Moment) -> usize {
        let kept = self.0[part.min(self.0.len())..].iter().take_while(|r| ended < r.backup_began);
        part + kept.count()
    }

    fn parts_before(&self, moment: Moment) -> usize {
        self.0.iter().filter(|r| r.restore_ended < moment).count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_restore_takes_back_what_was_told_after_its_backup() {
        let s = Duration::from_secs;
        let restore = |backup, began, ended| Restore {
            backup_began: s(backup),
            restore_began: s(began),
            restore_ended: s(ended),
        };
        let time = Timeline::of(&[restore(50, 60, 62), restore(10, 20, 22)]);
        assert_eq!(time.parts(), 3);
        for (began, ended, part, for_ever) in [
            (8, 9, Some(0), true),
            (9, 10, Some(0), false),
            (11, 19, Some(0), false),
            (19, 21, None, false),
            (21, 23, None, false),
            (22, 23, None, false),
            (23, 49, Some(1), true),
            (49, 51, Some(1), false),
            (63, 64, Some(2), true),
        ] {
            assert_eq!(time.part(s(began), s(ended)), part, "{began}-{ended}");
            assert_eq!(time.holds_for_ever(s(began), s(ended)), for_ever, "{began}-{ended}");
        }
        assert!(time.holds(s(11), s(12), s(19)) && !time.holds(s(11), s(12), s(20)));
        assert_eq!(time.holds_up_to_part(0, s(9)), 2);
        assert_eq!(time.holds_up_to_part(0, s(11)), 0);
        assert_eq!(time.holds_up_to_part(1, s(55)), 1);
        assert_eq!(time.holds_up_to_part(2, s(99)), 2);
    }
}
