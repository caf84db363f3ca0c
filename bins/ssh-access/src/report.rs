//! What the propagator tells, as logs, alarms and metrics.

use metrics::{counter, gauge};
use service_kit::{Alarms, telemetry::error_chain};
use service_start::ALARM_EVENTS;
use ssh_access::{Attested, Leadership, Progress, PropagateError, SiteId, Watched};

use crate::events::Occasions;

/// The database does not answer, or refuses.
pub(crate) const ALARM_DATABASE: &str = "database";
/// Removals are not in force at the Site though their time is over.
pub(crate) const ALARM_REMOVALS: &str = "removals_overdue";
/// The Site has something else in its files than what should be in force.
pub(crate) const ALARM_SET: &str = "ssh_set_differs";
/// The agent of the Site could not apply something.
pub(crate) const ALARM_FAILURES: &str = "ssh_keys_failing";

/// Every alarm of the process.
pub(crate) const ALARMS: [&str; 5] =
    [ALARM_DATABASE, ALARM_EVENTS, ALARM_FAILURES, ALARM_REMOVALS, ALARM_SET];

/// Makes what an operator sees of what a propagator tells, and tells the relay of events.
pub(crate) struct Report {
    site: String,
    alarms: Alarms,
    occasions: Occasions,
}

impl Report {
    pub(crate) fn new(site: &SiteId, alarms: Alarms, occasions: Occasions) -> Self {
        let report = Self { site: site.as_str().to_owned(), alarms, occasions };
        report.leading(false);
        report
    }

    /// Takes what was told.
    pub(crate) fn tell(&self, progress: &Progress<'_>) {
        match progress {
            Progress::Leadership(Leadership::Leading { fence }) => {
                tracing::info!(ssh_access.fence = fence, "ssh_access.leading");
                self.leading(true);
            }
            Progress::Leadership(Leadership::Standby) => {
                tracing::info!("ssh_access.standby");
                self.leading(false);
                // Who leads knows better.
                for alarm in [ALARM_REMOVALS, ALARM_SET, ALARM_FAILURES] {
                    self.alarms.clear(alarm);
                }
            }
            Progress::Propagated(changes) => {
                tracing::info!(ssh_access.changes = changes, "ssh_access.propagated");
                counter!("ssh_changes_propagated_total", "site" => self.site()).increment(*changes);
            }
            Progress::Compacted(changes) => {
                tracing::info!(ssh_access.changes = changes, "ssh_access.compacted");
            }
            Progress::Watched(watched) => self.watched(watched),
            Progress::Well => self.alarms.clear(ALARM_DATABASE),
            Progress::Trouble(PropagateError::LeaseLost) => {
                tracing::warn!("ssh_access.lease_lost");
            }
            Progress::Trouble(error) => self.alarms.raise(ALARM_DATABASE, error_chain(error)),
        }
    }

    fn leading(&self, leads: bool) {
        self.occasions.leads.send_replace(leads);
        gauge!("ssh_propagator_leading", "site" => self.site()).set(f64::from(u8::from(leads)));
    }

    fn watched(&self, watched: &Watched) {
        if watched.events > 0 {
            self.occasions.news.send_replace(());
        }
        let gauge = |name: &'static str, value: f64| gauge!(name, "site" => self.site()).set(value);
        let acknowledged = watched.acknowledged.unwrap_or_default();
        gauge("removals_overdue", watched.removals_overdue as f64);
        gauge("ssh_agent_changes_behind", (watched.head - acknowledged) as f64);
        gauge("ssh_agent_keys_failing", f64::from(watched.failing));
        if let Some(silent_for) = watched.silent_for {
            gauge("ssh_agent_silent_seconds", silent_for.as_secs_f64());
        }
        let waiting = watched.waiting_for.unwrap_or_default();
        gauge("ssh_propagation_waiting_seconds", waiting.as_secs_f64());

        let overdue = watched.removals_overdue;
        self.alarm(ALARM_REMOVALS, overdue > 0, || {
            format!(
                "{overdue} removals should be in force at the Site; its agent has acknowledged up \
                 to {acknowledged} of {}",
                watched.head
            )
        });
        let failing = watched.failing;
        self.alarm(ALARM_FAILURES, failing > 0, || {
            format!("the agent of the Site could not apply {failing} keys; its log says why")
        });
        self.alarm(ALARM_SET, watched.attested == Some(Attested::Mismatch), || {
            "the files of the Site hold other keys than those that are in force".to_owned()
        });
    }

    fn alarm(&self, name: &'static str, raised: bool, reason: impl FnOnce() -> String) {
        if raised {
            self.alarms.raise(name, reason());
        } else {
            self.alarms.clear(name);
        }
    }

    fn site(&self) -> String {
        self.site.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_relay_hears_who_leads_and_of_each_new_event() {
        #[expect(clippy::disallowed_methods, reason = "no alarm is raised here")]
        let alarms = Alarms::new(chrono::Utc::now, &ALARMS);
        let occasions = Occasions::new();
        let (leads, mut news) = (occasions.leads.subscribe(), occasions.news.subscribe());
        let report = Report::new(&SiteId::parse("north-1").unwrap(), alarms, occasions);
        assert!(!*leads.borrow());
        report.tell(&Progress::Leadership(Leadership::Leading { fence: 1 }));
        assert!(*leads.borrow());
        let watched = |events| Watched {
            head: 0,
            acknowledged: None,
            silent_for: None,
            removals_overdue: 0,
            failing: 0,
            attested: None,
            waiting_for: None,
            events,
        };
        for events in [0, 1, 0, 2] {
            report.tell(&Progress::Watched(watched(events)));
            assert_eq!(news.has_changed().unwrap(), events > 0, "{events}");
            news.mark_unchanged();
        }
        report.tell(&Progress::Leadership(Leadership::Standby));
        assert!(!*leads.borrow());
    }
}
