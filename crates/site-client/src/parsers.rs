//! What reads bytes from outside, for tests without a server and files. No promise is made to
//! anybody else.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use site_protocol::{CommandPage, Session, SessionRequest, SshSnapshotKey};

use crate::{
    BadAnswer, CallError, Next, Opened, PollRequest, ResultToStore, SshCursor, SshLease, SshPage,
    SshStored, StoredResult, StoredResults,
    answer::Answer,
    client, results, session,
    ssh_access::{self, Content, Lines},
};

/// An answer that was read whole and is no refusal.
pub struct Success(Answer);

impl Success {
    /// Sorts refusals out.
    ///
    /// # Errors
    ///
    /// The refusal.
    pub fn of(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Result<Self, CallError> {
        Answer::of(status, headers, body).map(Self)
    }

    /// The answer to a poll.
    ///
    /// # Errors
    ///
    /// As [`crate::SiteClient::poll`].
    pub fn page(&self, request: &PollRequest) -> Result<CommandPage, CallError> {
        client::page(&self.0, request)
    }

    /// The answer to a result.
    ///
    /// # Errors
    ///
    /// As [`crate::SiteClient::store_result`].
    pub fn result(
        &self,
        result: &ResultToStore<'_>,
        next: Option<&Next>,
    ) -> Result<StoredResult, CallError> {
        results::stored_result(&self.0, result, next)
    }

    /// The answer to a batch.
    ///
    /// # Errors
    ///
    /// As [`crate::SiteClient::store_results`].
    pub fn results(
        &self,
        results: &[ResultToStore<'_>],
        next: Option<&Next>,
    ) -> Result<StoredResults, CallError> {
        results::stored_results(&self.0, results, next)
    }

    /// The answer to a session.
    ///
    /// # Errors
    ///
    /// As [`crate::SiteClient::open_session`].
    pub fn session(&self, request: &SessionRequest) -> Result<(Session, Opened), CallError> {
        session::opened(&self.0, request)
    }

    /// The answer to a question for changes.
    ///
    /// # Errors
    ///
    /// As [`crate::SiteClient::ssh_changes`].
    pub fn ssh_changes(&self, after: SshCursor, limit: u32) -> Result<SshPage, CallError> {
        ssh_access::changes(&self.0, after, limit)
    }

    /// The answer to an acknowledgement.
    ///
    /// # Errors
    ///
    /// As [`crate::SiteClient::ssh_acknowledge`].
    pub fn ssh_acknowledged(&self, cursor: SshCursor) -> Result<SshStored, CallError> {
        ssh_access::acknowledged(&self.0, cursor)
    }
}

/// The body of a batch.
///
/// # Errors
///
/// When a result is no JSON.
pub fn batch(results: &[ResultToStore<'_>]) -> Result<Bytes, CallError> {
    results::batch_body(results)
}

/// A snapshot that arrives in parts of so many bytes, from 1: its place, its lease and its keys.
///
/// # Errors
///
/// As [`crate::SshSnapshot::next`].
pub fn ssh_snapshot(
    body: &[u8],
    part_bytes: usize,
) -> Result<(SshCursor, SshLease, Vec<SshSnapshotKey>), CallError> {
    let (mut lines, mut content, mut keys) = (Lines::default(), None::<Content>, Vec::new());
    for part in body.chunks(part_bytes.max(1)) {
        lines.push(Bytes::copy_from_slice(part));
        while let Some(line) = lines.next()? {
            match &mut content {
                None => content = Some(Content::begin(&line)?),
                Some(content) => keys.extend(content.take(&line)?),
            }
        }
    }
    lines.ended()?;
    let nothing = CallError::BadAnswer(BadAnswer::IncompleteSnapshot { lines: 0 });
    let content = content.ok_or(nothing)?;
    content.ended()?;
    Ok((content.cursor, content.lease, keys))
}
