//! What hyper has not: a deadline for a request's head from its first byte, one for a write that
//! makes no progress, rules for heads that can be read in two ways, and a say in how a head that
//! is refused is answered.
//!
//! hyper's own `header_read_timeout` runs while a connection is idle as well, so that it can only
//! be the idle time. [`HeadGuard`] sits above TLS, where a head's bytes are seen; [`WriteGuard`]
//! below, where each byte that the peer takes is seen.

pub(crate) mod framing;
mod head;
mod lines;

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

pub(crate) use head::{HeadGuard, HeadLimits, HeadVerdict};
pub(crate) use lines::Lines;

/// A write made no progress; the inner error of an [`io::Error`] of the kind `TimedOut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a write made no progress")]
pub(crate) struct StalledWrite;

/// Whether a request is being answered; shared with whoever answers.
#[derive(Clone, Default)]
pub(crate) struct Phase(Arc<AtomicBool>);

/// Marks the phase as busy until the answer is through, or dropped.
pub(crate) struct Busy(Phase);

impl Phase {
    /// A whole head has been read, and its request is being answered until the guard goes.
    pub(crate) fn busy(&self) -> Busy {
        self.0.store(true, Ordering::Relaxed);
        Busy(self.clone())
    }

    fn is_busy(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
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
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, StalledWrite)));
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

fn poll_over(deadline: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    deadline.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready())
}

#[cfg(test)]
mod tests;
