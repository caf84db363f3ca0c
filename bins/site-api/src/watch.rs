//! Watches for the end of trouble that a request has met.

use std::time::Duration;

use database::Pool;
use service_kit::Alarms;

use crate::state::ALARM_DATABASE;

/// How long after the recovery the alarm goes, at most, where the database answers at once.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Clears the alarm of the database once it takes connections again, for ever. While there is no
/// alarm it asks nothing of the database.
pub(crate) async fn database(pool: Pool, alarms: Alarms) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if alarms.is_raised(ALARM_DATABASE) && pool.probe().await.is_ok() {
            alarms.clear(ALARM_DATABASE);
        }
    }
}
