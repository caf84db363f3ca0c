//! What an operator must look at now, with the reason.
//!
//! An alarm is a state, not an event: it is raised until somebody clears it. Each change is logged
//! once. Whether an alarm stops anything is for whoever raises it to decide.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use chrono::{DateTime, Utc};
use serde::Serialize;

/// The alarms of a process. Clones share them.
#[derive(Clone)]
pub struct Alarms {
    raised: Arc<Mutex<BTreeMap<&'static str, Alarm>>>,
    clock: fn() -> DateTime<Utc>,
}

/// A raised alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alarm {
    /// Which one, from a small set: it is the label of a metric.
    pub name: &'static str,
    /// What is the matter. Never a secret.
    pub reason: String,
    /// Since when.
    pub since: DateTime<Utc>,
}

impl Alarms {
    /// No alarm. Those of `names` show in the metrics from the beginning, as 0.
    #[must_use]
    pub fn new(clock: fn() -> DateTime<Utc>, names: &[&'static str]) -> Self {
        for name in names {
            metrics::gauge!("alarm", "name" => *name).set(0.0);
        }
        Self { raised: Arc::default(), clock }
    }

    /// Raises an alarm. One that is raised keeps its beginning; a new reason replaces the old.
    pub fn raise(&self, name: &'static str, reason: impl Into<String>) {
        let reason = reason.into();
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let before = raised.get(name);
        if before.is_some_and(|alarm| alarm.reason == reason) {
            return;
        }
        tracing::error!(alarm.name = name, alarm.reason = reason, "alarm.raised");
        metrics::gauge!("alarm", "name" => name).set(1.0);
        let since = before.map_or_else(self.clock, |alarm| alarm.since);
        raised.insert(name, Alarm { name, reason, since });
    }

    /// Clears an alarm; nothing happens when it is not raised.
    pub fn clear(&self, name: &'static str) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        if raised.remove(name).is_some() {
            tracing::info!(alarm.name = name, "alarm.cleared");
            metrics::gauge!("alarm", "name" => name).set(0.0);
        }
    }

    /// Whether an alarm is raised.
    #[must_use]
    pub fn is_raised(&self, name: &str) -> bool {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    /// The raised alarms, in the order of their names.
    #[must_use]
    pub fn current(&self) -> Vec<Alarm> {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised.values().cloned().collect()
    }
}
