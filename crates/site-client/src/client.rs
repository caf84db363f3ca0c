//! The calls of the Site API, one method each.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore};
use site_protocol::{CommandPage, Digest, RUNTIME_GENERATION_HEADER, Receipt, paths};
use tokio::net::TcpStream;
use tower::{BoxError, timeout::Timeout, util::BoxCloneSyncService};

use crate::{BadAnswer, CallError, Origin, TokenFile, answer::Answer, chain};

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
#[derive(Clone, Copy, Debug)]
pub struct PollRequest {
    /// The generation of the asking Runtime.
    pub generation: u64,
    /// The sequence after which commands are wanted.
    pub after: u64,
    /// The chain digest at `after`, where this side knows it.
    pub after_digest: Option<Digest>,
    /// The most commands that are wanted, from 1.
    pub limit: u32,
    /// How long the server may wait for a command when there is none, in whole seconds.
    pub wait: Duration,
}

/// Whether a result was stored by this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Stored now.
    New,
    /// The same bytes were stored before.
    Same,
}

/// A client of one Site API. Keeps its connections between calls; share it behind an [`Arc`].
#[derive(Debug)]
pub struct SiteClient {
    http: Client<Connector, Full<Bytes>>,
    origin: Origin,
    token: TokenFile,
    timeouts: Timeouts,
}

type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;

impl SiteClient {
    /// A client that trusts `roots` and nothing else. Connects when it is first used.
    #[must_use]
    pub fn new(origin: Origin, roots: RootCertStore, token: TokenFile, timeouts: Timeouts) -> Self {
        let connector = Timeout::new(https(roots), timeouts.connect);
        let http = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(2)
            .build(BoxCloneSyncService::new(connector));
        Self { http, origin, token, timeouts }
    }

    /// Reads the commands after a sequence and checks that they continue the stream, see
    /// [`crate::check_page`].
    ///
    /// # Errors
    ///
    /// [`CallError`]; [`CallError::Chain`] when the page is not a continuation.
    pub async fn poll(&self, request: &PollRequest) -> Result<CommandPage, CallError> {
        let mut path = format!(
            "{}?after={}&limit={}&wait={}",
            paths::COMMANDS,
            request.after,
            request.limit,
            request.wait.as_secs()
        );
        if let Some(digest) = request.after_digest {
            path.push_str(&format!("&afterDigest={digest}"));
        }
        let time = request.wait.saturating_add(self.timeouts.answer);
        let call = self.call(Method::GET, &path, request.generation, Bytes::new());
        let page: CommandPage = in_time(time, call).await?.json()?;
        if page.commands.len() > usize::try_from(request.limit).unwrap_or(usize::MAX) {
            return Err(CallError::BadAnswer(BadAnswer::TooManyCommands));
        }
        chain::check_page(&page, request.after, request.after_digest.as_ref())
            .map_err(CallError::Chain)?;
        Ok(page)
    }

    /// Stores the result of a command. Sending the same bytes again is safe and gives the same
    /// receipt.
    ///
    /// # Errors
    ///
    /// [`CallError`]. After [`CallError::Transport`] it is unknown whether the result is stored:
    /// send the same bytes again.
    pub async fn store_result(
        &self,
        generation: u64,
        command_id: &str,
        result: Bytes,
    ) -> Result<(Receipt, Stored), CallError> {
        let digest = chain::result_digest(&result);
        let path = paths::command_result(command_id);
        let call = self.call(Method::PUT, &path, generation, result);
        let answer = in_time(self.timeouts.answer, call).await?;
        let receipt: Receipt = answer.json()?;
        if receipt.command_id != command_id || receipt.digest != digest {
            return Err(CallError::BadAnswer(BadAnswer::OtherReceipt));
        }
        let stored = if answer.status == StatusCode::CREATED { Stored::New } else { Stored::Same };
        Ok((receipt, stored))
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        generation: u64,
        body: Bytes,
    ) -> Result<Answer, CallError> {
        let mut request = Request::builder()
            .method(&method)
            .uri(format!("{}{path}", self.origin))
            .header(header::AUTHORIZATION, self.token.authorization().await)
            .header(header::ACCEPT, "application/json, application/problem+json")
            .header(RUNTIME_GENERATION_HEADER, generation);
        if method == Method::PUT {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request =
            request.body(Full::new(body)).map_err(|error| CallError::Transport(Box::new(error)))?;
        let response = self
            .http
            .request(request)
            .await
            .map_err(|error| CallError::Transport(Box::new(error)))?;
        Answer::read(response).await
    }
}

async fn in_time(
    time: Duration,
    call: impl Future<Output = Result<Answer, CallError>>,
) -> Result<Answer, CallError> {
    tokio::time::timeout(time, call)
        .await
        .unwrap_or_else(|elapsed| Err(CallError::Transport(Box::new(elapsed))))
}

fn https(roots: RootCertStore) -> HttpsConnector<HttpConnector> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring serves both TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // A parked poll is silent for up to its whole wait: NATs on the way forget it otherwise.
    tcp.set_keepalive(Some(Duration::from_secs(15)));
    HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .wrap_connector(tcp)
}
