//! The calls of an SSH agent: the changes of its Site's keys, all of them, and what it has done.

mod feed;
mod snapshot;

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use site_protocol::{
    SNAPSHOT_CONTENT_TYPE, SshAcknowledged, SshAcknowledgement, SshAttested, SshChange, SshChanges,
    paths,
};

use crate::{
    BadAnswer, CallError, SiteClient,
    answer::Answer,
    client::{JSON, in_time},
};

pub use feed::{FeedError, SshCursor, SshCursorError, ssh_change_digest};
pub use snapshot::SshSnapshot;
pub(crate) use snapshot::{Content, Lines};

/// The longest lease that is believed: the longest window that a Site can have.
const LONGEST_LEASE: TimeDelta = TimeDelta::days(1);

/// For how long something may be used without asking again, by the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SshLease {
    /// When it was read.
    pub server_time: DateTime<Utc>,
    /// Until when it may be used: a day after `server_time` at the most. It may be over already: while
    /// a change waits to be propagated, leases do not go on.
    pub until: DateTime<Utc>,
}

impl SshLease {
    /// Whether it was over when it was read.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.until <= self.server_time
    }
}

/// Changes that continue what was presented.
#[derive(Clone, Debug)]
pub struct SshPage {
    /// In order, the first one right after the place that was presented.
    pub changes: Vec<SshChange>,
    /// The place after the last of them, as it was computed here.
    pub next: SshCursor,
    /// The place after the newest change. Where it is `next`, nothing is left to be asked for.
    pub head: SshCursor,
    /// Of what is in force at `head`, and at no place before it.
    pub lease: SshLease,
}

/// An acknowledgement as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SshStored {
    /// The place that is stored: the acknowledged one, or a newer one.
    pub cursor: SshCursor,
    /// The place after the newest change.
    pub head: SshCursor,
    /// What the comparison of the sets gave, where there was one.
    pub attested: Option<SshAttested>,
}

impl SiteClient {
    /// Reads the changes after a place, `limit` at the most, and checks that they continue it:
    /// sequences, digests, and the chain up to `next`. Waits up to `wait`, in whole seconds, where
    /// there are none.
    ///
    /// # Errors
    ///
    /// [`CallError`]; [`CallError::Feed`] when the page is not a continuation.
    pub async fn ssh_changes(
        &self,
        after: SshCursor,
        limit: u32,
        wait: Duration,
    ) -> Result<SshPage, CallError> {
        let seconds = wait.as_secs();
        let mut path = format!("{}?limit={limit}&wait={seconds}", paths::SSH_CHANGES);
        if after != SshCursor::START {
            path.push_str(&format!("&after={after}"));
        }
        let call = self.call(Method::GET, &path, None, None);
        let time = wait.saturating_add(self.timeouts.answer);
        changes(&in_time(time, call).await?, after, limit)
    }

    /// Reads everything that is in force, key by key. Each line has to come within
    /// [`crate::Timeouts::answer`]; how many there are is not bounded.
    ///
    /// # Errors
    ///
    /// [`CallError`], also of what is read later.
    pub async fn ssh_snapshot(&self) -> Result<SshSnapshot, CallError> {
        let time = self.timeouts.answer;
        let begun = async {
            let path = paths::SSH_SNAPSHOT;
            let response = self.send(Method::GET, path, None, None, SNAPSHOT_CONTENT_TYPE).await?;
            if response.status() == StatusCode::OK {
                return Ok(response.into_body());
            }
            // A refusal, or a success that this route has not.
            Answer::read(response).await?;
            Err(CallError::BadAnswer(BadAnswer::Snapshot { line: 0 }))
        };
        let body = tokio::time::timeout(time, begun)
            .await
            .unwrap_or_else(|elapsed| Err(CallError::Transport(Box::new(elapsed))))?;
        SshSnapshot::begin(body, time).await
    }

    /// Tells what the Site has made durable. The same again is safe.
    ///
    /// # Errors
    ///
    /// [`CallError`].
    pub async fn ssh_acknowledge(
        &self,
        cursor: SshCursor,
        acknowledgement: &SshAcknowledgement,
    ) -> Result<SshStored, CallError> {
        let body = serde_json::to_vec(acknowledgement).expect("texts always serialise");
        let body = Some((JSON, Bytes::from(body)));
        let call = self.call(Method::PUT, paths::SSH_ACKNOWLEDGEMENT, None, body);
        acknowledged(&in_time(self.timeouts.answer, call).await?, cursor)
    }
}

/// The answer to changes.
pub(crate) fn changes(answer: &Answer, after: SshCursor, limit: u32) -> Result<SshPage, CallError> {
    let page: SshChanges = answer.json()?;
    if page.changes.len() > usize::try_from(limit).unwrap_or(usize::MAX) {
        return Err(CallError::BadAnswer(BadAnswer::TooManyChanges));
    }
    let lease = lease(page.server_time, page.lease_until)?;
    let (next, head) = feed::check(&page, after).map_err(CallError::Feed)?;
    Ok(SshPage { changes: page.changes, next, head, lease })
}

/// The answer to an acknowledgement of `cursor`.
pub(crate) fn acknowledged(answer: &Answer, cursor: SshCursor) -> Result<SshStored, CallError> {
    let answered: SshAcknowledged = answer.json()?;
    let other = CallError::BadAnswer(BadAnswer::OtherAcknowledgement);
    let (Ok(stored), Ok(head)) = (answered.cursor.parse(), answered.head.parse()) else {
        return Err(other);
    };
    let stored: SshCursor = stored;
    let head: SshCursor = head;
    let possible = stored.seq() > cursor.seq() || stored == cursor;
    if !possible || !stored.can_be_before(head) {
        return Err(other);
    }
    Ok(SshStored { cursor: stored, head, attested: answered.attested })
}

/// A lease that can be believed.
fn lease(server_time: DateTime<Utc>, until: DateTime<Utc>) -> Result<SshLease, CallError> {
    let time = until.signed_duration_since(server_time);
    if time <= LONGEST_LEASE {
        Ok(SshLease { server_time, until })
    } else {
        Err(CallError::BadAnswer(BadAnswer::Lease))
    }
}
