//! Which fault happens when. It follows from the seed and the length of a run alone, so that a run
//! can be had again.
//!
//! The faults are dealt like cards: a deck holds each kind at least once, is shuffled, and is dealt
//! over half a minute; then comes the next. So every run of half a minute or more has each kind.

use std::time::Duration;

use test_support::Random;

use super::fault::Kind;

/// How long a deck lasts.
const DECK: Duration = Duration::from_secs(28);

/// Nothing is broken so early: there is nothing to lose yet.
const QUIET: Duration = Duration::from_secs(1);

/// Between a backup and its restore at least so many other faults happen, and commands.
const BETWEEN_BACKUP_AND_RESTORE: usize = 5;

/// One fault of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// When it begins, from the start of the faults.
    pub(crate) at: Duration,
    pub(crate) kind: Kind,
    /// How long it stays, where it is one that stays.
    pub(crate) lasts: Duration,
    /// Chooses whom it meets: one of those who are there then.
    pub(crate) victim: u64,
}

/// The faults of a run, in the order of their beginnings.
pub(crate) fn draw(seed: u64, length: Duration) -> Vec<Fault> {
    let mut random = Random::from_seed(seed);
    let mut faults = Vec::new();
    let mut begins = QUIET;
    while begins < length {
        let deck = shuffled_deck(&mut random);
        let each = DECK / u32::try_from(deck.len()).unwrap_or(1);
        for (place, kind) in (0..).zip(deck) {
            // Anywhere within its time, so that some meet and some are far apart.
            let at = begins + each * place + random.duration(each);
            let lasts = kind.shortest() + random.duration(kind.longest() - kind.shortest());
            faults.push(Fault { at, kind, lasts, victim: random.number() });
        }
        begins += DECK;
    }
    faults.retain(|fault| fault.at < length);
    faults
}

/// Each kind as often as it is in a deck, in a random order; the backup stands before the restore.
fn shuffled_deck(random: &mut Random) -> Vec<Kind> {
    let mut deck: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| !matches!(kind, Kind::Backup | Kind::Restore))
        .flat_map(|kind| std::iter::repeat_n(kind, kind.in_a_deck()))
        .collect();
    for place in (1..deck.len()).rev() {
        deck.swap(place, index(random, place + 1));
    }
    let backup = index(random, deck.len() - BETWEEN_BACKUP_AND_RESTORE);
    deck.insert(backup, Kind::Backup);
    let first = backup + 1 + BETWEEN_BACKUP_AND_RESTORE;
    deck.insert(first + index(random, deck.len() + 1 - first), Kind::Restore);
    deck
}

fn index(random: &mut Random, below: usize) -> usize {
    usize::try_from(random.within(0..below as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_A_MINUTE: Duration = Duration::from_secs(30);

    #[test]
    fn a_seed_has_one_schedule_and_another_seed_another() {
        for length in [HALF_A_MINUTE, HALF_A_MINUTE * 60] {
            assert_eq!(draw(7, length), draw(7, length));
            assert_ne!(draw(7, length), draw(8, length));
        }
    }

    #[test]
    fn a_longer_run_begins_as_the_shorter_one_of_its_seed() {
        let (short, long) = (draw(7, HALF_A_MINUTE), draw(7, HALF_A_MINUTE * 2));
        assert_eq!(short, long[..short.len()]);
    }

    #[test]
    fn half_a_minute_has_every_kind_of_fault() {
        for seed in 0..200 {
            let faults = draw(seed, HALF_A_MINUTE);
            for kind in Kind::ALL {
                assert!(faults.iter().any(|fault| fault.kind == kind), "{kind:?} of {seed}");
            }
        }
    }

    #[test]
    fn the_faults_stand_in_order_and_a_restore_has_its_backup_well_before() {
        for seed in 0..200 {
            let faults = draw(seed, HALF_A_MINUTE);
            assert!(faults.is_sorted_by_key(|fault| fault.at));
            let place = |kind| faults.iter().position(|fault| fault.kind == kind).unwrap();
            let (backup, restore) = (place(Kind::Backup), place(Kind::Restore));
            assert!(restore - backup > BETWEEN_BACKUP_AND_RESTORE, "{backup} {restore}");
        }
    }

    #[test]
    fn each_fault_lasts_as_long_as_one_of_its_kind_may() {
        for fault in draw(7, HALF_A_MINUTE * 20) {
            let range = fault.kind.shortest()..=fault.kind.longest();
            assert!(range.contains(&fault.lasts), "{fault:?}");
        }
    }
}
