//! Numbers that must grow in the order of time, such as places and generations.

use crate::qualify::commands::history::Moment;

use super::timeline::Timeline;

/// Somebody was told a number, or several.
pub(super) struct Told<'a> {
    /// What the number belongs to: the same thing may be told the same number again.
    pub(super) key: &'a str,
    pub(super) lowest: u64,
    pub(super) highest: u64,
    /// Not before this did it come to be.
    pub(super) began: Moment,
    /// By then it was.
    pub(super) ended: Moment,
}

/// Pairs of which the first was told before the second began, and has no lower number. Also how many
/// could be judged: one that a restore falls into could have come to be on either side of it.
pub(super) fn disorder<'a, 'b>(
    told: &'b [Told<'a>],
    timeline: &Timeline,
) -> (usize, Vec<(&'b Told<'a>, &'b Told<'a>)>) {
    let mut parts: Vec<Vec<&Told>> = (0..timeline.parts()).map(|_| Vec::new()).collect();
    for one in told {
        if let Some(part) = timeline.part(one.began, one.ended) {
            parts[part].push(one);
        }
    }
    let mut judged = 0;
    let mut pairs = Vec::new();
    // What was told in earlier parts and still holds.
    let mut kept: Vec<(usize, &Told)> = Vec::new();
    for (part, here) in parts.into_iter().enumerate() {
        kept.retain(|(last, _)| *last >= part);
        judged += here.len();
        let mut by_end = here.clone();
        by_end.sort_by_key(|one| one.ended);
        let mut by_begin = here.clone();
        by_begin.sort_by_key(|one| one.began);
        let mut highest = Highest::default();
        for (_, one) in &kept {
            highest.see(one);
        }
        let mut ended = by_end.into_iter().peekable();
        for one in by_begin {
            while let Some(earlier) = ended.next_if(|earlier| earlier.ended < one.began) {
                highest.see(earlier);
            }
            if let Some(earlier) = highest.of_another(one.key)
                && earlier.highest >= one.lowest
            {
                pairs.push((earlier, one));
            }
        }
        kept.extend(here.iter().map(|one| (timeline.holds_up_to_part(part, one.ended), *one)));
    }
    (judged, pairs)
}

/// The highest number so far, and the highest of another thing than that one's.
#[derive(Default)]
struct Highest<'a, 'b> {
    first: Option<&'b Told<'a>>,
    second: Option<&'b Told<'a>>,
}

impl<'a, 'b> Highest<'a, 'b> {
    fn see(&mut self, one: &'b Told<'a>) {
        let above = |other: Option<&Told>| other.is_none_or(|other| other.highest < one.highest);
        if above(self.first) {
            if self.first.is_some_and(|first| first.key != one.key) {
                self.second = self.first;
            }
            self.first = Some(one);
        } else if self.first.is_some_and(|first| first.key != one.key) && above(self.second) {
            self.second = Some(one);
        }
    }

    fn of_another(&self, key: &str) -> Option<&'b Told<'a>> {
        if self.first.is_some_and(|first| first.key == key) { self.second } else { self.first }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::qualify::commands::history::Restore;

    fn pairs(told: &[(&str, u64, u64, u64)], restores: &[Restore]) -> Vec<(String, String)> {
        let told: Vec<_> = told
            .iter()
            .map(|(key, number, began, ended)| Told {
                key,
                lowest: *number,
                highest: *number,
                began: Duration::from_secs(*began),
                ended: Duration::from_secs(*ended),
            })
            .collect();
        let (_, pairs) = disorder(&told, &Timeline::of(restores));
        pairs.iter().map(|(a, b)| (a.key.to_owned(), b.key.to_owned())).collect()
    }

    #[test]
    fn only_what_came_strictly_before_binds() {
        let restore = Restore {
            backup_began: Duration::from_secs(15),
            restore_began: Duration::from_secs(30),
            restore_ended: Duration::from_secs(31),
        };
        let none: &[(String, String)] = &[];
        assert_eq!(pairs(&[("a", 1, 0, 1), ("b", 2, 2, 3)], &[]), none);
        // They overlap: either order is right.
        assert_eq!(pairs(&[("a", 2, 0, 2), ("b", 1, 1, 3)], &[]), none);
        let found = [("a".to_owned(), "b".to_owned())];
        assert_eq!(pairs(&[("a", 2, 0, 1), ("b", 1, 2, 3)], &[]), found);
        assert_eq!(pairs(&[("a", 2, 0, 1), ("b", 2, 2, 3)], &[]), found);
        assert_eq!(pairs(&[("a", 2, 0, 1), ("a", 2, 2, 3)], &[]), none);
        // Taken back by the restore, and kept by its backup.
        assert_eq!(
            pairs(&[("a", 2, 20, 21), ("b", 1, 40, 41)], std::slice::from_ref(&restore)),
            none
        );
        assert_eq!(
            pairs(&[("a", 2, 10, 11), ("b", 1, 40, 41)], std::slice::from_ref(&restore)),
            found
        );
        // The highest is its own; the one below is another's.
        assert_eq!(pairs(&[("a", 5, 0, 1), ("b", 9, 0, 1), ("b", 4, 2, 3)], &[]), found);
    }
}
