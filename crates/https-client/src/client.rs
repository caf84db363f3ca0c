//! One request and its whole answer.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri, uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use rustls::RootCertStore;
use tokio::time::{Instant, timeout_at};

use crate::{Connections, Origin, connections, is_refused_certificate, kept::HasAnswered};

/// Connections that are kept while nobody uses them.
const MOST_IDLE: usize = 4;

/// The most time for a connection, where the deadline of its request is later. One that is begun
/// for a request outlives it, so it needs an end of its own.
const CONNECT: Duration = Duration::from_secs(10);

/// A client of one origin. Keeps a few connections between requests; clones share them.
#[derive(Clone)]
pub struct HttpsClient {
    connections: Connections,
    /// Each of them for one request.
    new_connections: Connections,
    origin: Origin,
    most_bytes: usize,
}

/// An answer that was read to its end.
pub struct Answer {
    /// The status, whatever it is.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Why there is no whole answer. Holds neither the request nor what there was of the answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The path is none. Nothing was sent.
    #[error("the path of a request is not usable")]
    Path,
    /// The trust roots do not vouch for the certificate that the other side presented. Nothing was
    /// sent.
    #[error("the certificate of the other side is not trusted")]
    Untrusted(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// No connection, or a cut. Whether the other side acted is unknown.
    #[error("no complete answer")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The deadline came first. Whether the other side acted is unknown.
    #[error("no complete answer in time")]
    Deadline,
    /// The body is larger than the client takes.
    #[error("an answer, status {status}, of more than {most_bytes} bytes")]
    TooLarge {
        /// Its status.
        status: u16,
        /// The client's bound.
        most_bytes: usize,
    },
}

impl HttpsClient {
    /// A client that trusts `roots` and nothing else, and takes answers whose body has at most
    /// `most_bytes`. Connects when it is first used.
    #[must_use]
    pub fn new(origin: Origin, roots: RootCertStore, most_bytes: usize) -> Self {
        let new_connections = connections(roots.clone(), CONNECT, 0);
        let connections = connections(roots, CONNECT, MOST_IDLE);
        Self { connections, new_connections, origin, most_bytes }
    }

    /// Sends a request, whose URI is a path with or without a query, and reads the answer to its
    /// end. All of it is done at `deadline`: the connection, the request, and a body that drips.
    ///
    /// Any status is an answer. No redirect is followed.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub async fn send(
        &self,
        request: Request<Bytes>,
        deadline: Instant,
    ) -> Result<Answer, SendError> {
        let request = self.addressed(request)?;
        let answered = async {
            self.answered(&self.connections, request).await.map_err(|failed| failed.error)
        };
        timeout_at(deadline, answered).await.unwrap_or(Err(SendError::Deadline))
    }

    /// As [`HttpsClient::send`], of a request that is harmless to repeat. The other side may close a
    /// connection that was kept just when it is used again: where one fails that has brought an answer
    /// before, the request is sent once more, over a new one.
    ///
    /// # Errors
    ///
    /// [`SendError`]; of the second try where there was one.
    pub async fn send_repeatable(
        &self,
        request: Request<Bytes>,
        deadline: Instant,
    ) -> Result<Answer, SendError> {
        let request = self.addressed(request)?;
        let answered = async {
            match self.answered(&self.connections, request.clone()).await {
                Err(Failed { error: SendError::Transport(_), was_kept: true }) => {}
                answered => return answered,
            }
            self.answered(&self.new_connections, request).await
        };
        let answered = async { answered.await.map_err(|failed| failed.error) };
        timeout_at(deadline, answered).await.unwrap_or(Err(SendError::Deadline))
    }

    fn addressed(&self, request: Request<Bytes>) -> Result<Request<Full<Bytes>>, SendError> {
        let (mut head, body) = request.into_parts();
        if head.uri.authority().is_some() {
            return Err(SendError::Path);
        }
        let path = head.uri.path_and_query().map_or("/", uri::PathAndQuery::as_str);
        head.uri = format!("{}{path}", self.origin).parse::<Uri>().map_err(|_| SendError::Path)?;
        Ok(Request::from_parts(head, Full::new(body)))
    }

    async fn answered(
        &self,
        connections: &Connections,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, Failed> {
        let response = connections.request(request).await.map_err(|error| {
            let was_kept = HasAnswered::before(&error);
            let error = if is_refused_certificate(&error) {
                SendError::Untrusted(Box::new(error))
            } else {
                SendError::Transport(Box::new(error))
            };
            Failed { error, was_kept }
        })?;
        let (head, body) = response.into_parts();
        let was_kept = HasAnswered::once_more(&head.extensions);
        let (status, most_bytes) = (head.status, self.most_bytes);
        let error = match Limited::new(body, most_bytes).collect().await {
            Ok(body) => {
                return Ok(Answer { status, headers: head.headers, body: body.to_bytes() });
            }
            Err(error) if error.is::<LengthLimitError>() => {
                SendError::TooLarge { status: status.as_u16(), most_bytes }
            }
            Err(error) => SendError::Transport(error),
        };
        Err(Failed { error, was_kept })
    }
}

/// Why there is no whole answer, and whether its connection was kept from an earlier one.
struct Failed {
    error: SendError,
    was_kept: bool,
}

impl fmt::Debug for HttpsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpsClient").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Neither the body nor the headers: either may repeat what was sent.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, headers: _, body } = self;
        f.debug_struct("Answer")
            .field("status", status)
            .field("bytes", &body.len())
            .finish_non_exhaustive()
    }
}
