//! What hyper has not: a deadline for a request's head from its first byte, one for a write that
//! makes no progress, and a say in how an unreadable head is answered.
//!
//! hyper's own `header_read_timeout` runs while a connection is idle as well, so that it can only
//! be the idle time. [`HeadGuard`] sits above TLS, where a head's first byte is seen;
//! [`WriteGuard`] below, where each byte that the peer takes is seen.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use crate::request_id::REQUEST_ID_HEADER;

/// Why a guard cut a connection; the inner error of an [`io::Error`] of the kind `TimedOut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    #[error("a request's head took too long")]
    SlowHead,
    #[error("a write made no progress")]
    StalledWrite,
}

/// Where a connection is in its turn of request and answer; shared with whoever answers.
#[derive(Clone, Default)]
pub(crate) struct Phase(Arc<AtomicU8>);

/// Puts the phase back to idle when an answer is through, or dropped.
pub(crate) struct Busy(Phase);

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

impl Phase {
    /// A whole head has been read, and its request is being answered until the guard goes.
    pub(crate) fn busy(&self) -> Busy {
        self.set(BUSY);
        Busy(self.clone())
    }

    fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::Relaxed);
    }

    fn is(&self, phase: u8) -> bool {
        self.0.load(Ordering::Relaxed) == phase
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(IDLE);
    }
}

/// Fails a read when a head is not whole in time, and keeps back hyper's own answer to a head that
/// it can't parse: it has no body, and [`crate::connection`] gives a problem in its place.
///
/// What a client sends ahead while its last request is being answered starts no clock; the idle
/// time bounds that, and the next byte starts it.
pub(crate) struct HeadGuard<S> {
    inner: S,
    limit: Duration,
    phase: Phase,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> HeadGuard<S> {
    pub(crate) fn new(inner: S, limit: Duration, phase: Phase) -> Self {
        Self { inner, limit, phase, deadline: None }
    }

    pub(crate) fn into_inner(self) -> S {
        self.inner
    }

    /// Whether these bytes are hyper's own answer: no request is being answered, and they lack the
    /// request id that each of our answers has.
    fn is_refusal(&self, bytes: &[u8]) -> bool {
        !self.phase.is(BUSY)
            && bytes.starts_with(b"HTTP/1.1 4")
            && bytes.ends_with(b"\r\n\r\n")
            && !contains(bytes, REQUEST_ID_HEADER.as_str().as_bytes())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadGuard<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.phase.is(HEAD) {
            if poll_over(&mut this.deadline, cx) {
                return Poll::Ready(Err(timed_out(Cut::SlowHead)));
            }
        } else {
            this.deadline = None;
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(cx, buf);
        if buf.filled().len() > before && this.phase.is(IDLE) {
            this.phase.set(HEAD);
            this.deadline = Some(Box::pin(sleep(this.limit)));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_refusal(buf) {
            return Poll::Ready(Ok(buf.len()));
        }
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [buf] = bufs
            && self.is_refusal(buf)
        {
            return Poll::Ready(Ok(buf.len()));
        }
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Fails a write when the peer has taken nothing for a while.
pub(crate) struct WriteGuard<S> {
    inner: S,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteGuard<S> {
    pub(crate) fn new(inner: S, limit: Duration) -> Self {
        Self { inner, limit, stalled: None }
    }

    fn watched(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        self.stalled.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        if poll_over(&mut self.stalled, cx) {
            return Poll::Ready(Err(timed_out(Cut::StalledWrite)));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteGuard<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.inner).poll_write(cx, buf);
        this.watched(cx, polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.inner).poll_write_vectored(cx, bufs);
        this.watched(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn poll_over(deadline: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    deadline.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready())
}

fn timed_out(cut: Cut) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, cut)
}

#[cfg(test)]
mod tests;
