//! One connection: HTTP/1.1 from its first byte to its last.

use std::{convert::Infallible, error::Error, future::poll_fn, io, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use http::{HeaderValue, header};
use http_body_util::BodyExt;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::Notify,
    task::AbortHandle,
    time::{Instant, sleep_until, timeout},
};

use site_protocol::Code;

use crate::{
    answer::{AnswerBody, BrokenOff},
    drain::Shutdown,
    limits::Limits,
    problem::ProblemReply,
    seats::SeatHandle,
    service::Service,
    stream_guard::{Busy, HeadGuard, HeadLimits, HeadVerdict, Phase, StalledWrite},
};

/// Serves one connection until it ends, and says how: a label of a metric.
pub(crate) async fn serve<S>(
    stream: S,
    limits: Limits,
    service: Arc<Service>,
    shutdown: Shutdown,
    seat: SeatHandle,
) -> &'static str
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let phase = Phase::default();
    let head = HeadLimits { time: limits.head, bytes: limits.head_bytes };
    let stream = HeadGuard::new(stream, head, phase.clone());
    let answering = Arc::clone(&service);
    let overdue = Arc::new(Notify::new());
    let answer_is_overdue = Arc::clone(&overdue);
    let answers = service_fn(move |request| {
        let (seat, overdue) = (seat.clone(), Arc::clone(&answer_is_overdue));
        let turn = Turn { seat, overdue, clock: None, _busy: phase.busy() };
        answer(request, Arc::clone(&answering), turn)
    });
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
            // Nothing asks for the rest of an answer while nobody takes what there is.
            () = overdue.notified() => {
                tracing::debug!(connection.end = OVERDUE, "connection.ended");
                return OVERDUE;
            }
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break ended,
        }
    };
    let guard = connection.into_parts().io.into_inner();
    let (label, problem) = match (guard.verdict(), &ended) {
        (Some(HeadVerdict::Slow), _) => ("slow_head", None),
        (Some(HeadVerdict::Refused(reason)), _) => {
            ("malformed", Some(ProblemReply::new(Code::MalformedRequest, reason)))
        }
        (None, Ok(())) => ("closed", None),
        (None, Err(error)) => (label(error), error.is_parse().then(|| unparsed(error))),
    };
    if let Err(error) = &ended {
        tracing::debug!(connection.end = label, error = %error, "connection.ended");
    }
    let mut stream = guard.into_inner();
    if let Some(problem) = problem {
        // The peer may be gone already; then nobody waits for this answer.
        let _ = stream.write_all(&refusal(problem, &service)).await;
    }
    if label != "broken" && label != "stalled_write" {
        close(stream, limits).await;
    }
    label
}

/// The end of a connection whose answer was not taken until its end.
const OVERDUE: &str = "overdue_answer";

/// The smallest buffer that hyper takes.
const LEAST_BUFFER: usize = 8192;

fn answer(
    request: http::Request<Incoming>,
    service: Arc<Service>,
    mut turn: Turn,
) -> BoxFuture<'static, Result<http::Response<Tracked>, Infallible>> {
    Box::pin(async move {
        // Only hyper sees where chunks end, so no head after them can be guarded.
        let last = request.headers().contains_key(header::TRANSFER_ENCODING);
        let mut request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        request.extensions_mut().insert(turn.seat.clone());
        let mut response = service.answer(request).await;
        if last {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        turn.ends_at(response.body().ends_at());
        Ok(response.map(|body| Tracked { body, _turn: turn }))
    })
}

/// The answer to a head that hyper could not parse.
fn unparsed(error: &hyper::Error) -> ProblemReply {
    if error.is_parse_too_large() {
        let detail = "the request's head is larger than this listener takes";
        return ProblemReply::new(Code::HeadTooLarge, detail);
    }
    ProblemReply::new(Code::MalformedRequest, "the bytes are no HTTP/1.1 request")
}

/// A problem as the last bytes of a connection.
fn refusal(problem: ProblemReply, service: &Service) -> Vec<u8> {
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
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let inner = source.and_then(io::Error::get_ref);
    if inner.is_some_and(|inner| inner.is::<StalledWrite>()) {
        return "stalled_write";
    }
    "broken"
}

/// A connection's turn of request and answer, until it is dropped.
struct Turn {
    seat: SeatHandle,
    /// Told when the answer is not taken in time.
    overdue: Arc<Notify>,
    clock: Option<AbortHandle>,
    _busy: Busy,
}

impl Turn {
    /// Has the connection end at a moment, unless the answer was taken before.
    fn ends_at(&mut self, moment: Option<Instant>) {
        let overdue = Arc::clone(&self.overdue);
        self.clock = moment.map(|moment| {
            let clock = async move {
                sleep_until(moment).await;
                overdue.notify_one();
            };
            tokio::spawn(clock).abort_handle()
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(clock) = &self.clock {
            clock.abort();
        }
        self.seat.answered();
    }
}

/// An answer's body that keeps its connection's turn until it is written.
struct Tracked {
    body: AnswerBody,
    _turn: Turn,
}

impl Body for Tracked {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
