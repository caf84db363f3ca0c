//! One connection: HTTP/1.1 from its first byte to its last.

use std::{convert::Infallible, error::Error, future::poll_fn, io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
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

use crate::{
    drain::Shutdown,
    limits::Limits,
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
    let answers = service_fn(move |request| answer(request, Arc::clone(&service), phase.busy()));
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
    let stream = connection.into_parts().io.into_inner().into_inner();
    match ended {
        Ok(()) => {
            close(stream, limits).await;
            "closed"
        }
        Err(error) => {
            let label = label(&error);
            tracing::debug!(connection.end = label, error = %error, "connection ended");
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
