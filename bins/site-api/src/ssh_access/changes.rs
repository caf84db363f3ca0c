//! `GET /v1/site/ssh-access/changes`.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use http::{StatusCode, request::Parts};
use service_kit::{
    Call, ProblemReply,
    fields::{Query, WrongFields},
    json,
    router::Answer,
};
use site_protocol::{SshChange, SshChanges, SshOperation};
use ssh_access::{Change, ChangePage, Cursor, Feed, Operation};

use super::digest;
use crate::{
    authenticate::SshAgent,
    commands::request::{number, wait},
    limits::Limits,
    problems,
    state::{ALARM_PROPAGATION, State},
};

/// A change that waits for so long waits for too long: a process that leads takes a moment to bring it to
/// the feed, and another one that takes over fifteen seconds.
const LATE: TimeDelta = TimeDelta::seconds(30);
const WAITS: &str = "a change has been waiting for 30 s or more: no process ssh-access brings changes to \
                     the feed, and until one does the leases of the Site's keys do not go on";

/// Brings the changes after a place.
pub(crate) async fn changes(state: Arc<State>, caller: SshAgent, call: Call) -> Answer {
    let asked = asked(&call.head, &state.limits, state.fraction())?;
    let draining = call.shutdown.clone();
    let stop = async move { draining.draining().await };
    let page = caller.access.feed.changes(asked.after, asked.limit, asked.wait, stop).await;
    let page = page.map_err(|error| problems::ssh_changes(&state, error))?;
    if page.waits_since.is_some_and(|since| page.read_at - since >= LATE) {
        state.alarms.raise(ALARM_PROPAGATION, WAITS);
    } else {
        state.alarms.clear(ALARM_PROPAGATION);
    }
    json(StatusCode::OK, &page_of(page))
}

/// What a request asks for.
pub(crate) struct Asked {
    pub(crate) after: Cursor,
    pub(crate) limit: u16,
    pub(crate) wait: Duration,
}

/// Reads a request. Its wait is shortened by `fraction`, as that of a poll for commands.
pub(crate) fn asked(head: &Parts, limits: &Limits, fraction: f64) -> Result<Asked, ProblemReply> {
    let mut wrong = WrongFields::new();
    let mut query = Query::of(&head.uri);
    let after = query.optional("after", &mut wrong, Cursor::parse).unwrap_or(Cursor::START);
    let most = Feed::MOST_CHANGES;
    let limit = query.optional("limit", &mut wrong, |text| number(text, 1, most)).unwrap_or(most);
    let wait = wait(&mut query, &mut wrong, limits, fraction);
    query.finish(&mut wrong);
    wrong.finish()?;
    Ok(Asked { after, limit, wait })
}

fn page_of(page: ChangePage) -> SshChanges {
    SshChanges {
        changes: page.changes.into_iter().map(change).collect(),
        next: page.next.to_string(),
        head: page.head.to_string(),
        server_time: page.read_at,
        lease_until: page.lease_until,
    }
}

fn change(change: Change) -> SshChange {
    SshChange {
        seq: change.seq.unsigned_abs(),
        op: match change.operation {
            Operation::Add => SshOperation::Add,
            Operation::Remove => SshOperation::Remove,
        },
        unix_user: change.unix_user.as_str().to_owned(),
        key_id: change.key_id.as_str().to_owned(),
        member_id: change.member.as_str().to_owned(),
        public_key: change.public_key,
        expires_at: change.expires_at,
        enforce_by: change.enforce_by,
        digest: digest(change.digest),
    }
}
