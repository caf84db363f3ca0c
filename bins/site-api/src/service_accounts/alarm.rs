//! The alarm about reviews: raised at once, cleared late, and told without a flood of lines.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use callers::review::ReviewTrouble;
use service_kit::{Alarms, error_chain};
use tokio::time::Instant;

use crate::state::ALARM_TOKEN_REVIEW;

/// For so long the API server must answer before the alarm goes: longer than a question may take, so
/// that one that answers now and then keeps it. An alarm that comes and goes is missed.
const QUIET: Duration = Duration::from_secs(15);

/// Another reason is told when the last one has stood for so long: two that take turns are no news.
const REASON_STANDS: Duration = Duration::from_secs(60);

/// Raises and clears it.
pub(super) struct ReviewAlarm {
    alarms: Alarms,
    raised: Mutex<Option<Raised>>,
}

struct Raised {
    /// When a review came to nothing last.
    failed_at: Instant,
    reason: String,
    /// Since when that is the reason.
    reason_since: Instant,
}

impl ReviewAlarm {
    pub(super) fn new(alarms: Alarms) -> Self {
        Self { alarms, raised: Mutex::new(None) }
    }

    /// Notes that a review came to nothing `now`.
    pub(super) fn failed(&self, trouble: &ReviewTrouble, now: Instant) {
        let reason =
            format!("tokens of ServiceAccounts can't be reviewed: {}", error_chain(trouble));
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(raised) = &mut *raised {
            raised.failed_at = now;
            let stands = now.saturating_duration_since(raised.reason_since) < REASON_STANDS;
            if stands || raised.reason == reason {
                return;
            }
        }
        self.alarms.raise(ALARM_TOKEN_REVIEW, reason.as_str());
        *raised = Some(Raised { failed_at: now, reason, reason_since: now });
    }

    /// Notes that the API server answers `now`. The alarm goes where nothing has failed for long
    /// enough.
    pub(super) fn answered(&self, now: Instant) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let is_quiet =
            |raised: &mut Raised| now.saturating_duration_since(raised.failed_at) >= QUIET;
        if raised.take_if(is_quiet).is_some() {
            self.alarms.clear(ALARM_TOKEN_REVIEW);
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alarm() -> (ReviewAlarm, Alarms) {
        let alarms = Alarms::new(|| chrono::DateTime::UNIX_EPOCH, &[ALARM_TOKEN_REVIEW]);
        (ReviewAlarm::new(alarms.clone()), alarms)
    }

    /// The reason of the alarm, from the words that tell it.
    fn reason(alarms: &Alarms) -> Option<&'static str> {
        let current = alarms.current();
        let [alarm] = &current[..] else { return None };
        let words = ["(401)", "(403)", "in time"];
        words.into_iter().find(|words| alarm.reason.contains(words))
    }

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn it_goes_when_nothing_has_failed_for_long_enough() {
        let (alarm, alarms) = alarm();
        let start = Instant::now();
        alarm.answered(start);
        assert!(!alarm.is_raised());
        alarm.failed(&ReviewTrouble::TooLate, start);
        for second in 0..30 {
            // Between good answers, one in ten seconds that is none.
            alarm.answered(start + seconds(second));
            if second % 10 == 0 {
                alarm.failed(&ReviewTrouble::TooLate, start + seconds(second));
            }
            assert!(alarm.is_raised() && alarms.is_raised(ALARM_TOKEN_REVIEW), "{second}");
        }
        alarm.answered(start + seconds(34));
        assert!(alarm.is_raised());
        alarm.answered(start + seconds(35));
        assert!(!alarm.is_raised() && !alarms.is_raised(ALARM_TOKEN_REVIEW));
    }

    #[test]
    fn another_reason_is_told_when_the_last_has_stood_for_a_minute() {
        let (alarm, alarms) = alarm();
        let start = Instant::now();
        alarm.failed(&ReviewTrouble::TooLate, start);
        for second in 0..59 {
            alarm.failed(&ReviewTrouble::ReviewerUnknown, start + seconds(second));
            assert_eq!(reason(&alarms), Some("in time"), "{second}");
        }
        alarm.failed(&ReviewTrouble::ReviewerUnknown, start + seconds(60));
        assert_eq!(reason(&alarms), Some("(401)"));
        alarm.failed(&ReviewTrouble::ReviewerForbidden, start + seconds(119));
        assert_eq!(reason(&alarms), Some("(401)"));
        // The next alarm has its own.
        alarm.answered(start + seconds(134));
        assert_eq!(reason(&alarms), None);
        alarm.failed(&ReviewTrouble::ReviewerForbidden, start + seconds(135));
        assert_eq!(reason(&alarms), Some("(403)"));
    }
}
