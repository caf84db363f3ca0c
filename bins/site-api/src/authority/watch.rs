//! Keeps the alarm about asking true, and the pools small.

use std::time::Duration;

use beto::{Caller, Health};
use database::Pool;
use futures_util::future::select_all;
use service_kit::Alarms;
use tokio::{
    sync::watch::Receiver,
    time::{MissedTickBehavior, interval},
};

use crate::state::ALARM_BETO;

const CLOSE_IDLE_EVERY: Duration = Duration::from_secs(10);

/// How it is with asking, for one caller.
pub(crate) struct CallerHealth {
    pub(crate) caller: Caller,
    pub(crate) health: Receiver<Health>,
}

/// Raises the alarm while a caller is in trouble, for as long as there are callers.
pub(crate) async fn watch(mut callers: Vec<CallerHealth>, alarms: Alarms) {
    loop {
        let trouble: Vec<_> = callers.iter_mut().filter_map(CallerHealth::trouble).collect();
        if trouble.is_empty() {
            alarms.clear(ALARM_BETO);
        } else {
            alarms.raise(ALARM_BETO, trouble.join("; "));
        }
        let changes = callers.iter_mut().map(|caller| Box::pin(caller.health.changed()));
        if select_all(changes).await.0.is_err() {
            return;
        }
    }
}

impl CallerHealth {
    /// What is wrong now; from here on only what changes is news.
    fn trouble(&mut self) -> Option<String> {
        match &*self.health.borrow_and_update() {
            Health::Well => None,
            Health::Trouble(reason) => Some(format!("{} can't ask: {reason}", self.caller)),
        }
    }
}

/// Closes connections that are not used, for ever: they are opened for a request.
pub(crate) async fn close_idle(pools: impl IntoIterator<Item = Pool>) {
    let pools: Vec<_> = pools.into_iter().collect();
    let mut ticks = interval(CLOSE_IDLE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        pools.iter().for_each(Pool::close_idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, Utc};
    use tokio::sync::watch;

    #[tokio::test]
    async fn the_alarm_names_each_caller_in_trouble_and_goes_with_the_last() {
        let alarms = Alarms::new(|| DateTime::<Utc>::UNIX_EPOCH, &[ALARM_BETO]);
        let (execute, view) = (watch::Sender::new(Health::Well), watch::Sender::new(Health::Well));
        let of =
            |caller, health: &watch::Sender<_>| CallerHealth { caller, health: health.subscribe() };
        let callers =
            vec![of(Caller::ResourceProvisioning, &execute), of(Caller::SiteCoordination, &view)];
        let watching = tokio::spawn(super::watch(callers, alarms.clone()));
        let told = async |expected: Option<&str>| loop {
            let current = alarms.current();
            if current.first().map(|alarm| alarm.reason.as_str()) == expected {
                break;
            }
            tokio::task::yield_now().await;
        };
        view.send_replace(Health::Trouble("away".to_owned()));
        told(Some("site_coordination can't ask: away")).await;
        execute.send_replace(Health::Trouble("silent".to_owned()));
        told(Some("resource_provisioning can't ask: silent; site_coordination can't ask: away"))
            .await;
        view.send_replace(Health::Well);
        told(Some("resource_provisioning can't ask: silent")).await;
        execute.send_replace(Health::Well);
        told(None).await;
        assert!(!watching.is_finished());
        drop(execute);
        watching.await.unwrap();
    }
}
