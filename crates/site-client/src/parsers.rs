//! What reads bytes from outside, for tests without a server and files. No promise is made to
//! anybody else.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use rustls::RootCertStore;
use site_protocol::{CommandPage, Session, SessionRequest};

use crate::{
    CallError, Next, Opened, PollRequest, ResultToStore, RootsError, StoredResult, StoredResults,
    TokenFileError, answer::Answer, client, results, session, token, trust,
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

/// The value of the `Authorization` header with the token of a file.
///
/// # Errors
///
/// Why there is none in it.
pub fn authorization(file: &[u8]) -> Result<HeaderValue, TokenFileError> {
    token::parse(file).map(|token| token::header(&token))
}

/// The trust roots of a PEM file.
///
/// # Errors
///
/// Why there are none in it.
pub fn roots(file: &[u8]) -> Result<RootCertStore, RootsError> {
    trust::roots(file)
}
