//! The guard of heads: gives hyper one whole head at a time, and only those that it may have.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::{
    Phase,
    framing::{BodyEnd, Head, head},
    lines::Lines,
    poll_over,
};
use crate::request_id::REQUEST_ID_HEADER;

/// Holds a request's head back until it is whole, within its time, and in order. Where it is not,
/// hyper sees the end of the stream and [`HeadGuard::verdict`] says why.
///
/// It also keeps back hyper's own answer to a head that it can't parse: that has no body, and
/// [`crate::connection`] gives a problem in its place.
///
/// What a client sends ahead while its last request is being answered waits here, and starts no
/// clock before it is that request's turn.
pub(crate) struct HeadGuard<S> {
    inner: S,
    limits: HeadLimits,
    phase: Phase,
    deadline: Option<Pin<Box<Sleep>>>,
    /// What was read and not given on.
    pending: BytesMut,
    /// How much of `pending`, and of what comes after it, is hyper's already.
    given: Given,
    /// How far the head at the beginning of `pending` is in order.
    lines: Lines,
    verdict: Option<HeadVerdict>,
}

/// What a head may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    /// From its first byte to its last.
    pub(crate) time: Duration,
    /// In bytes; hyper refuses a longer one.
    pub(crate) bytes: usize,
}

/// Why a head was not given on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadVerdict {
    /// It took too long.
    Slow,
    /// It can be read in two ways; why, for a person.
    Refused(&'static str),
}

/// What hyper may read.
#[derive(Clone, Copy)]
enum Given {
    /// Nothing: a head must come.
    Nothing,
    /// So many bytes: the rest of a request.
    Bytes(u64),
    /// Whatever comes: hyper alone knows where it ends, and nothing comes after it.
    Everything,
}

const CHUNK: usize = 8 * 1024;

impl<S> HeadGuard<S> {
    pub(crate) fn new(inner: S, limits: HeadLimits, phase: Phase) -> Self {
        Self {
            inner,
            limits,
            phase,
            deadline: None,
            pending: BytesMut::new(),
            given: Given::Nothing,
            lines: Lines::default(),
            verdict: None,
        }
    }

    /// Why the last head was not given on, if it was not.
    pub(crate) fn verdict(&self) -> Option<HeadVerdict> {
        self.verdict
    }

    /// How many bytes were read so far to find the head, over and over.
    #[cfg(test)]
    pub(super) fn work(&self) -> usize {
        self.lines.work
    }

    pub(crate) fn into_inner(self) -> S {
        self.inner
    }

    /// Looks for a head in what is pending. Gives on what is no head: hyper refuses that.
    fn look(&mut self) {
        let is_long = self.pending.len() >= self.limits.bytes;
        if !self.lines.are_to_be_judged(&self.pending) && !is_long {
            return;
        }
        self.lines.worked(self.pending.len());
        match head(&self.pending) {
            Head::Partial if !is_long => return,
            Head::Partial | Head::Unreadable => self.given = Given::Everything,
            Head::Refused(reason) => self.verdict = Some(HeadVerdict::Refused(reason)),
            Head::Whole { bytes, body: BodyEnd::After(body) } => {
                self.given = Given::Bytes((bytes as u64).saturating_add(body));
            }
            Head::Whole { body: BodyEnd::Chunks, .. } => self.given = Given::Everything,
        }
        self.deadline = None;
    }

    /// Whether these bytes are hyper's own answer: no request is being answered, and they lack the
    /// request id that each of our answers has.
    fn is_refusal(&self, bytes: &[u8]) -> bool {
        !self.phase.is_busy()
            && bytes.starts_with(b"HTTP/1.1 4")
            && bytes.ends_with(b"\r\n\r\n")
            && !contains(bytes, REQUEST_ID_HEADER.as_str().as_bytes())
    }
}

impl<S: AsyncRead + Unpin> HeadGuard<S> {
    /// Reads more into what is pending; true at the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut chunk = [0; CHUNK];
        let mut read = ReadBuf::new(&mut chunk);
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut read))?;
        self.pending.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().is_empty()))
    }

    /// Waits for a head, or the end of the stream. While a request is being answered, only the end
    /// is told, and only as long as the client has not sent too much ahead.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while matches!(self.given, Given::Nothing) && self.verdict.is_none() {
            if !self.phase.is_busy() {
                self.look();
                if !matches!(self.given, Given::Nothing) || self.verdict.is_some() {
                    break;
                }
                if !self.pending.is_empty() {
                    self.deadline.get_or_insert_with(|| Box::pin(sleep(self.limits.time)));
                }
                if poll_over(&mut self.deadline, cx) {
                    self.verdict = Some(HeadVerdict::Slow);
                    break;
                }
            } else if self.pending.len() >= self.limits.bytes {
                return Poll::Pending;
            }
            if ready!(self.poll_fill(cx))? {
                // What is there is all that comes: hyper says what it is.
                self.given = Given::Everything;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadGuard<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_head(cx))?;
        if this.verdict.is_some() {
            return Poll::Ready(Ok(()));
        }
        if this.pending.is_empty() && ready!(this.poll_fill(cx))? {
            return Poll::Ready(Ok(()));
        }
        let mut most = this.pending.len().min(buf.remaining());
        if let Given::Bytes(left) = &mut this.given {
            most = most.min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= most as u64;
        }
        buf.put_slice(&this.pending[..most]);
        this.pending.advance(most);
        if matches!(this.given, Given::Bytes(0)) {
            this.given = Given::Nothing;
            this.lines = Lines::default();
        }
        Poll::Ready(Ok(()))
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

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
