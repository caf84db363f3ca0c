//! Watches for the end of trouble that a request has met.

use std::{sync::Arc, time::Duration};

use database::Pool;
use futures_util::future::join_all;

use crate::state::{ALARM_DATABASE, State};

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// So many looks in a row must find the database well: longer than a statement may take, so that one
/// that answers now and then keeps its alarm. An alarm that comes and goes is missed.
const GOOD_LOOKS: u32 = 15;

/// Clears the alarm of the database when statements are answered again with each credential and no
/// request has failed meanwhile, whether anybody calls or not, for ever. While there is no alarm it asks
/// nothing of the database.
pub(crate) async fn database(state: Arc<State>, pools: Vec<Pool>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut looks = Looks::default();
    loop {
        ticks.tick().await;
        if !state.alarms.is_raised(ALARM_DATABASE) {
            continue;
        }
        let answered = join_all(pools.iter().map(Pool::ping)).await.iter().all(Result::is_ok);
        if looks.see_it_over(answered, state.database_failures()) {
            state.alarms.clear(ALARM_DATABASE);
        }
    }
}

/// The looks while the alarm is raised.
#[derive(Default)]
struct Looks {
    /// How many in a row found the database well.
    good: u32,
    /// How many requests had failed at the last one.
    failures: u64,
}

impl Looks {
    /// Takes a look: whether each credential was answered, and how many requests have failed so far.
    /// Whether the alarm is over.
    fn see_it_over(&mut self, answered: bool, failures: u64) -> bool {
        let good = answered && failures == self.failures;
        self.failures = failures;
        self.good = if good { self.good + 1 } else { 0 };
        let over = self.good == GOOD_LOOKS;
        if over {
            self.good = 0;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many good looks it takes from here on.
    fn looks_to_the_end(looks: &mut Looks, failures: u64) -> u32 {
        (1..100).find(|_| looks.see_it_over(true, failures)).unwrap()
    }

    #[test]
    fn the_alarm_is_over_after_fifteen_good_looks_in_a_row() {
        let mut looks = Looks { good: 0, failures: 7 };
        assert_eq!(looks_to_the_end(&mut looks, 7), GOOD_LOOKS);
        assert_eq!(looks_to_the_end(&mut looks, 7), GOOD_LOOKS, "the next alarm begins anew");
    }

    #[test]
    fn a_credential_that_is_not_answered_or_a_request_that_failed_begins_anew() {
        for (answered, failures) in [(false, 7), (true, 8), (false, 8)] {
            let mut looks = Looks { good: 0, failures: 7 };
            for _ in 1..GOOD_LOOKS {
                assert!(!looks.see_it_over(true, 7));
            }
            assert!(!looks.see_it_over(answered, failures), "{answered} {failures}");
            assert_eq!(looks_to_the_end(&mut looks, failures), GOOD_LOOKS);
        }
    }
}
