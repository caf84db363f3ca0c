//! Callers from a Kubernetes cluster: whose a token is, by a review, and as what that ServiceAccount
//! is let in, by the maps of this process.
//!
//! What keeps a token from being reviewed is our matter: an alarm, and never a refusal of the
//! caller.

mod alarm;
mod settings;

use std::{sync::Arc, time::Duration};

use callers::{
    ServiceAccount, ServiceAccountToken, SubjectGrant, SubjectGrants,
    review::{ReviewError, ReviewRefusal, ReviewTrouble, Reviewed, Reviewer},
};
use service_kit::Alarms;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use alarm::ReviewAlarm;

pub(crate) use settings::{ReviewSettings, open, read};

/// While a request is under way its token is reviewed again after this where nothing is remembered, and
/// where a review came to nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often the API server is asked whether it answers us again, while there is an alarm.
const PROBE_EVERY: Duration = Duration::from_secs(3);

/// Answers as what a token is let in. Clones share everything.
#[derive(Clone)]
pub(crate) struct ServiceAccounts(Option<Arc<Reviews>>);

struct Reviews {
    reviewer: Reviewer,
    grants: SubjectGrants,
    alarm: ReviewAlarm,
}

/// Who presents a token, and as what it is let in.
#[derive(Clone, Debug)]
pub(crate) struct Identified {
    reviewed: Reviewed,
    grant: SubjectGrant,
}

/// Why a token lets nobody in.
#[derive(Debug)]
pub(crate) enum NotIdentified {
    /// This listener takes no tokens of ServiceAccounts.
    NotTaken,
    /// The cluster does not vouch for it, or not for us.
    Refused(ReviewRefusal),
    /// It is that of an account which is granted nothing here.
    NotGranted(ServiceAccount),
    /// It is another's than when its request began.
    Changed,
    /// Nothing can be said about it.
    Unavailable(ReviewTrouble),
    /// Too many tokens are under review.
    Busy,
}

impl Identified {
    pub(crate) fn account(&self) -> &ServiceAccount {
        &self.reviewed.account
    }

    pub(crate) fn grant(&self) -> SubjectGrant {
        self.grant
    }

    /// When to look again: as soon as the time of the review is over. Where it had none, as nothing is
    /// remembered, a second from now.
    fn look_at(&self) -> Instant {
        let now = Instant::now();
        let until = self.reviewed.until;
        if until > now { until } else { now + LOOK_AGAIN }
    }

    /// Whether both are one: the account, which may have been made again, its Pod and its grant.
    fn is(&self, other: &Self) -> bool {
        let who = |one: &Self| {
            let Reviewed { account, uid, pod, .. } = &one.reviewed;
            (account.clone(), uid.clone(), pod.clone(), one.grant)
        };
        who(self) == who(other)
    }
}

impl ServiceAccounts {
    /// Those of a listener that takes no tokens of a cluster.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Those that `grants` names, by what `reviewer` says.
    pub(crate) fn new(reviewer: Reviewer, grants: SubjectGrants, alarms: Alarms) -> Self {
        Self(Some(Arc::new(Reviews { reviewer, grants, alarm: ReviewAlarm::new(alarms) })))
    }

    /// As what a token is let in. Its review may be some seconds old; its grant is looked up now.
    pub(crate) async fn identify(
        &self,
        token: &ServiceAccountToken,
    ) -> Result<Identified, NotIdentified> {
        let reviews = self.0.as_ref().ok_or(NotIdentified::NotTaken)?;
        let reviewed = reviews.review(token).await?;
        match reviews.grants.of(&reviewed.account) {
            Some(grant) => Ok(Identified { reviewed, grant }),
            None => Err(NotIdentified::NotGranted(reviewed.account)),
        }
    }

    /// Whether a token is still that of `identified`, who is still granted the same.
    pub(crate) async fn confirm(
        &self,
        token: &ServiceAccountToken,
        identified: &Identified,
    ) -> Result<Identified, NotIdentified> {
        let now = self.identify(token).await?;
        if now.is(identified) { Ok(now) } else { Err(NotIdentified::Changed) }
    }

    /// Returns when that is no longer so, with the reason. It looks each time that the time of the
    /// last good review is over; while none can be had it goes on waiting.
    pub(crate) async fn until_ended(
        &self,
        token: &ServiceAccountToken,
        identified: &Identified,
    ) -> NotIdentified {
        let mut look_at = identified.look_at();
        loop {
            sleep_until(look_at).await;
            look_at = match self.confirm(token, identified).await {
                Ok(again) => again.look_at(),
                Err(NotIdentified::Unavailable(_) | NotIdentified::Busy) => {
                    Instant::now() + LOOK_AGAIN
                }
                Err(reason) => return reason,
            };
        }
    }

    /// Asks the API server once whether it answers us, and again every few seconds for as long as
    /// there is an alarm, which goes when it has done so for a while. For ever; while there is none
    /// nothing is asked.
    pub(crate) async fn watch(self) {
        let Some(reviews) = self.0 else { return };
        let mut ticks = interval(PROBE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut first = true;
        loop {
            ticks.tick().await;
            if !first && !reviews.alarm.is_raised() {
                continue;
            }
            first = false;
            match reviews.reviewer.probe().await {
                Ok(()) => reviews.alarm.answered(Instant::now()),
                Err(ReviewError::Trouble(trouble)) => reviews.failed(&trouble),
                // Not asked, so nothing is known.
                Err(_) => {}
            }
        }
    }
}

impl Reviews {
    async fn review(&self, token: &ServiceAccountToken) -> Result<Reviewed, NotIdentified> {
        let trouble = match self.reviewer.review(token).await {
            Ok(reviewed) => return Ok(reviewed),
            Err(ReviewError::Refused(refusal)) => return Err(NotIdentified::Refused(refusal)),
            Err(ReviewError::Busy) => return Err(NotIdentified::Busy),
            Err(ReviewError::Trouble(trouble)) => trouble,
            Err(_) => ReviewTrouble::Ended,
        };
        self.failed(&trouble);
        Err(NotIdentified::Unavailable(trouble))
    }

    /// Notes that a review came to nothing.
    fn failed(&self, trouble: &ReviewTrouble) {
        self.alarm.failed(trouble, Instant::now());
    }
}
