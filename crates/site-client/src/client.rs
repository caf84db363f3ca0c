//! The calls of the Site API, one method each.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::Full;
use https_client::{Connections, Origin, TokenFile, connections};
use hyper::body::Incoming;
use rustls::RootCertStore;
use site_protocol::{
    CommandPage, Digest, RUNTIME_GENERATION_HEADER, RUNTIME_SESSION_HEADER, paths,
};

use crate::{BadAnswer, CallError, Writer, answer::Answer, chain};

/// Connections that are kept while nobody uses them.
const MOST_IDLE: usize = 2;

/// What an answer may be.
const ACCEPT: &str = "application/json, application/problem+json";
pub(crate) const JSON: &str = "application/json";

/// How long the parts of a call may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Until a connection stands, TLS handshake included. 10 s by default.
    pub connect: Duration,
    /// Until an answer is read to its end, counted from the call; a poll gets its `wait` on top.
    /// 15 s by default.
    pub answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), answer: Duration::from_secs(15) }
    }
}

/// The question of a poll.
#[derive(Clone, Debug)]
pub struct PollRequest {
    /// The asking Runtime.
    pub writer: Writer,
    /// The sequence after which commands are wanted.
    pub after: u64,
    /// The chain digest at `after`, where this side knows it.
    pub after_digest: Option<Digest>,
    /// The newest count of cancels that this side has seen; 0 asks for all that still matter.
    pub cancel_rev: u64,
    /// The most commands that are wanted, to 64. With 0 the question is for cancels only.
    pub limit: u32,
    /// How long the server may wait where there is nothing to tell, in whole seconds.
    pub wait: Duration,
}

/// A client of one Site API. Keeps its connections between calls; share it behind an [`Arc`](std::sync::Arc).
#[derive(Debug)]
pub struct SiteClient {
    http: Connections,
    origin: Origin,
    token: TokenFile,
    pub(crate) timeouts: Timeouts,
}

impl SiteClient {
    /// A client that trusts `roots` and nothing else. Connects when it is first used.
    #[must_use]
    pub fn new(origin: Origin, roots: RootCertStore, token: TokenFile, timeouts: Timeouts) -> Self {
        let http = connections(roots, timeouts.connect, MOST_IDLE);
        Self { http, origin, token, timeouts }
    }

    /// Reads the commands after a sequence and checks that they continue the stream, see
    /// [`crate::check_page`].
    ///
    /// # Errors
    ///
    /// [`CallError`]; [`CallError::Chain`] when the page is not a continuation.
    pub async fn poll(&self, request: &PollRequest) -> Result<CommandPage, CallError> {
        let PollRequest { after, limit, cancel_rev, .. } = request;
        let wait = request.wait.as_secs();
        let mut path = format!("{}?after={after}&limit={limit}&wait={wait}", paths::COMMANDS);
        if *cancel_rev > 0 {
            path.push_str(&format!("&cancelRev={cancel_rev}"));
        }
        if let Some(digest) = request.after_digest {
            path.push_str(&format!("&afterDigest={digest}"));
        }
        let time = request.wait.saturating_add(self.timeouts.answer);
        let call = self.call(Method::GET, &path, Some(&request.writer), None);
        page(&in_time(time, call).await?, request)
    }

    /// One request and its answer. `body` is its content type and its bytes.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        writer: Option<&Writer>,
        body: Option<(&'static str, Bytes)>,
    ) -> Result<Answer, CallError> {
        Answer::read(self.send(method, path, writer, body, ACCEPT).await?).await
    }

    /// One request and the head of its answer, which may be a refusal.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        writer: Option<&Writer>,
        body: Option<(&'static str, Bytes)>,
        accept: &'static str,
    ) -> Result<Response<Incoming>, CallError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.origin))
            .header(header::AUTHORIZATION, self.token.authorization().await)
            .header(header::ACCEPT, accept);
        if let Some(writer) = writer {
            request = request.header(RUNTIME_GENERATION_HEADER, writer.generation());
            if let Some(session_id) = writer.session_id() {
                request = request.header(RUNTIME_SESSION_HEADER, session_id);
            }
        }
        let (content_type, body) = body.unzip();
        if let Some(content_type) = content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let request = request
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|error| CallError::Transport(Box::new(error)))?;
        self.http.request(request).await.map_err(CallError::of_connection)
    }
}

/// The page that answers a poll.
pub(crate) fn page(answer: &Answer, request: &PollRequest) -> Result<CommandPage, CallError> {
    let PollRequest { after, limit, cancel_rev, .. } = request;
    let page: CommandPage = answer.json()?;
    if page.commands.len() > usize::try_from(*limit).unwrap_or(usize::MAX) {
        return Err(CallError::BadAnswer(BadAnswer::TooManyCommands));
    }
    chain::check_page(&page, *after, request.after_digest.as_ref(), *cancel_rev)
        .map_err(CallError::Chain)?;
    Ok(page)
}

pub(crate) async fn in_time(
    time: Duration,
    call: impl Future<Output = Result<Answer, CallError>>,
) -> Result<Answer, CallError> {
    tokio::time::timeout(time, call)
        .await
        .unwrap_or_else(|elapsed| Err(CallError::Transport(Box::new(elapsed))))
}
