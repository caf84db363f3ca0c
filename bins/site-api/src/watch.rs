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
    let (mut good, mut seen) = (0, 0);
    loop {
        ticks.tick().await;
        if !state.alarms.is_raised(ALARM_DATABASE) {
            continue;
        }
        let answered = join_all(pools.iter().map(Pool::ping)).await.iter().all(Result::is_ok);
        let failures = state.database_failures();
        good = if answered && failures == seen { good + 1 } else { 0 };
        seen = failures;
        if good == GOOD_LOOKS {
            state.alarms.clear(ALARM_DATABASE);
            good = 0;
        }
    }
}
