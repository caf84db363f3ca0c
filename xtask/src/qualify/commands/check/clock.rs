//! When the database did something, by the lane's clock.

use crate::qualify::commands::history::History;

/// How far the wall clock may drift from the lane's in an hour, and how long a start of the database
/// with another clock takes.
const DRIFT_MICROS: i64 = 3_000_000;

/// The microseconds from the lane's start to a time that the database noted: by the clock that it had
/// then. None where no clock that it ever had can have said so.
pub(super) fn since_start(history: &History, noted_micros: i64) -> Option<i64> {
    let mut clocks = history.database_clocks.clone();
    clocks.sort_by_key(|clock| clock.from);
    let begins = clocks.iter().map(|clock| micros(clock.from));
    let begins = std::iter::once(0).chain(begins);
    let ends = clocks.iter().map(|clock| micros(clock.from)).chain([i64::MAX - DRIFT_MICROS]);
    let ahead = std::iter::once(0).chain(clocks.iter().map(|clock| clock.ahead_seconds));
    begins.zip(ends).zip(ahead).find_map(|((begin, end), ahead_seconds)| {
        let at = noted_micros - history.began_at_micros - ahead_seconds * 1_000_000;
        (begin - DRIFT_MICROS..=end + DRIFT_MICROS).contains(&at).then_some(at)
    })
}

/// Whether something that the database noted came no later than a moment of the lane.
pub(super) fn is_noted_by(
    history: &History,
    noted_micros: i64,
    moment: std::time::Duration,
) -> bool {
    since_start(history, noted_micros)
        .is_some_and(|at| at <= micros(moment).saturating_add(DRIFT_MICROS))
}

fn micros(moment: std::time::Duration) -> i64 {
    i64::try_from(moment.as_micros()).unwrap_or(i64::MAX - 2 * DRIFT_MICROS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::qualify::commands::history::DatabaseClock;

    #[test]
    fn a_time_is_told_by_the_clock_that_was_in_force() {
        let clock =
            |from, ahead_seconds| DatabaseClock { from: Duration::from_secs(from), ahead_seconds };
        let history = History {
            began_at_micros: 1_000,
            database_clocks: vec![clock(100, 3_600), clock(200, 0)],
            ..History::default()
        };
        let at = |seconds: i64| since_start(&history, 1_000 + seconds * 1_000_000);
        for (noted, told) in [
            (50, Some(50)),
            (3_750, Some(150)),
            (250, Some(250)),
            // The clock was an hour ahead from 100 to 200 only: this is told by the right one.
            (3_600 + 90, Some(3_690)),
            // Between two clocks that can both have said it, the earlier is believed.
            (3_600 + 199, Some(199)),
            (-10, None),
        ] {
            assert_eq!(at(noted), told.map(|seconds| seconds * 1_000_000), "{noted}");
        }
    }
}
