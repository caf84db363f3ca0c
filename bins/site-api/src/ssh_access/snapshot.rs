//! `GET /v1/site/ssh-access/snapshot`.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{HeaderValue, header};
use serde::Serialize;
use service_kit::{
    AnswerBody, BrokenOff, Call, ProblemReply,
    fields::{Query, WrongFields},
    router::Answer,
};
use site_protocol::{Code, SNAPSHOT_CONTENT_TYPE, SshSnapshotEnd, SshSnapshotHead, SshSnapshotKey};
use ssh_access::{KeyInForce, Snapshot};
use tokio::sync::OwnedSemaphorePermit;

use crate::{authenticate::SshAgent, problems, state::State};

/// Brings everything that is in force, line by line: one part of it is in memory at a time.
pub(crate) async fn snapshot(state: Arc<State>, caller: SshAgent, call: Call) -> Answer {
    let mut wrong = WrongFields::new();
    Query::of(&call.head.uri).finish(&mut wrong);
    wrong.finish()?;
    let permit = Arc::clone(&caller.access.snapshots).try_acquire_owned().map_err(|_| {
        ProblemReply::new(Code::Overloaded, "other snapshots of the Site are being read")
    })?;
    let snapshot = caller.access.feed.snapshot().await;
    let snapshot = snapshot.map_err(|error| problems::ssh_read(&state, error))?;
    let head = SshSnapshotHead {
        cursor: snapshot.head().to_string(),
        server_time: snapshot.read_at(),
        lease_until: snapshot.lease_until(),
    };
    let mut first = Vec::new();
    line(&mut first, &head).map_err(ProblemReply::internal)?;
    let lines = lines(Lines { snapshot, count: 0, _permit: permit }, first.into());
    let mut response = service_kit::Response::new(AnswerBody::unmeasured(lines));
    let content_type = HeaderValue::from_static(SNAPSHOT_CONTENT_TYPE);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    Ok(response)
}

/// What is left of a snapshot.
struct Lines {
    snapshot: Snapshot,
    count: u64,
    _permit: OwnedSemaphorePermit,
}

/// Where the body of a snapshot is.
enum Next {
    First(Lines, Bytes),
    Part(Lines),
    Nothing,
}

/// The chunks of the body: its first line, the keys part by part, the last line.
fn lines(lines: Lines, first: Bytes) -> impl Stream<Item = Result<Bytes, BrokenOff>> {
    stream::unfold(Next::First(lines, first), async |next| match next {
        Next::First(lines, first) => Some((Ok(first), Next::Part(lines))),
        Next::Part(mut lines) => Some(match lines.next().await {
            Ok((chunk, true)) => (Ok(chunk), Next::Nothing),
            Ok((chunk, false)) => (Ok(chunk), Next::Part(lines)),
            Err(error) => (Err(error), Next::Nothing),
        }),
        Next::Nothing => None,
    })
}

impl Lines {
    /// The next chunk, and whether it is the last.
    async fn next(&mut self) -> Result<(Bytes, bool), BrokenOff> {
        let part = self.snapshot.next().await.map_err(BrokenOff::because)?;
        let mut chunk = Vec::new();
        let is_last = part.is_none();
        for key in part.into_iter().flatten() {
            self.count += 1;
            line(&mut chunk, &key_of(&key)).map_err(BrokenOff::because)?;
        }
        if is_last {
            let end = SshSnapshotEnd { complete: true, count: self.count };
            line(&mut chunk, &end).map_err(BrokenOff::because)?;
        }
        Ok((chunk.into(), is_last))
    }
}

fn key_of(key: &KeyInForce) -> SshSnapshotKey {
    SshSnapshotKey {
        unix_user: key.unix_user.as_str().to_owned(),
        key_id: key.key_id.as_str().to_owned(),
        member_id: key.member.as_str().to_owned(),
        public_key: key.key.to_string(),
        expires_at: key.expires_at,
    }
}

fn line(chunk: &mut Vec<u8>, value: &impl Serialize) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *chunk, value)?;
    chunk.push(b'\n');
    Ok(())
}
