//! One connection: HTTP/1.1 from its first byte to its last.

use std::{convert::Infallible, error::Error, future::poll_fn, io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use site_protocol::Code;

use crate::{
    drain::Shutdown,
    limits::Limits,
    problem::ProblemReply,
    service::Service,
    stream_guard::{Busy, Cut, HeadGuard, Phase},
};

/// Serves one connection until it ends, and says how: a label of a metric.
pub(crate) async fn serve<S>(
    stream: S,
    limits: Limits,
    service: Arc<Service>,
    shutdown: Shutdown,
) -> &'static str
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let phase = Phase::default();
    let stream = HeadGuard::new(stream, limits.head, phase.clone());
    let answering = Arc::clone(&service);
    let answers = service_fn(move |request| answer(request, Arc::clone(&answering), phase.busy()));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(LEAST_BUFFER))
        .serve_connection(TokioIo::new(stream), answers);

    let mut told = false;
    let ended = loop {
        tokio::select! {
            // First the news, so that the answer of a released handler says that it is the last.
            biased;
            () = shutdown.draining(), if !told => {
                told = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break ended,
        }
    };
    let mut stream = connection.into_parts().io.into_inner().into_inner();
    match ended {
        Ok(()) => {
            close(stream, limits).await;
            "closed"
        }
        Err(error) => {
            let label = label(&error);
            tracing::debug!(connection.end = label, error = %error, "connection.ended");
            if error.is_parse() {
                // The peer may be gone already; then nobody waits for this answer.
                let _ = stream.write_all(&refusal(&error, &service)).await;
            }
            if label != "broken" && label != "stalled_write" {
                close(stream, limits).await;
            }
            label
        }
    }
}

/// The smallest buffer that hyper takes.
const LEAST_BUFFER: usize = 8192;

fn answer(
    request: http::Request<Incoming>,
    service: Arc<Service>,
    busy: Busy,
) -> BoxFuture<'static, Result<http::Response<Tracked>, Infallible>> {
    Box::pin(async move {
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let response = service.answer(request).await;
        Ok(response.map(|body| Tracked { body, _busy: busy }))
    })
}

/// The answer to a head that hyper could not parse, as bytes.
fn refusal(error: &hyper::Error, service: &Service) -> Vec<u8> {
    let problem = if error.is_parse_too_large() {
        ProblemReply::new(
            Code::HeadTooLarge,
            "the request's head is larger than this listener takes",
        )
    } else {
        ProblemReply::new(Code::MalformedRequest, "the bytes are no HTTP/1.1 request")
    };
    let (head, body) = service.refuse(problem).into_parts();
    let mut bytes = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    let length = body.size_hint().lower();
    bytes.extend_from_slice(
        format!("content-length: {length}\r\nconnection: close\r\n\r\n").as_bytes(),
    );
    if let Some(Ok(body)) = body.into_data_stream().next().now_or_never().flatten() {
        bytes.extend_from_slice(&body);
    }
    bytes
}

/// Ends our side and reads what is still under way: closing a socket with unread bytes would
/// reset it, and the peer could lose the last answer.
async fn close<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, limits: Limits) {
    let goodbye = async {
        stream.shutdown().await?;
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    // The connection is over whatever comes of this.
    let _ = timeout(limits.linger, goodbye).await;
}

fn label(error: &hyper::Error) -> &'static str {
    if error.is_timeout() {
        return "idle";
    }
    if error.is_parse() {
        return "malformed";
    }
    match error.source().and_then(|source| source.downcast_ref()).and_then(cut) {
        Some(Cut::SlowHead) => "slow_head",
        Some(Cut::StalledWrite) => "stalled_write",
        None => "broken",
    }
}

fn cut(error: &io::Error) -> Option<Cut> {
    error.get_ref()?.downcast_ref().copied()
}

/// An answer's body that keeps its connection busy until it is written.
struct Tracked {
    body: Full<Bytes>,
    _busy: Busy,
}

impl Body for Tracked {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
