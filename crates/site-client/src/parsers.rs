//! What reads bytes from outside, for tests without a server and files. No promise is made to
//! anybody else.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use site_protocol::{CommandPage, Session, SessionRequest};

use crate::{
    CallError, Next, Opened, PollRequest, ResultToStore, StoredResult, StoredResults,
    answer::Answer, client, results, session,
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
}

/// The body of a batch.
///
/// # Errors
///
/// When a result is no JSON.
pub fn batch(results: &[ResultToStore<'_>]) -> Result<Bytes, CallError> {
    results::batch_body(results)
}
