//! The body of an answer: in memory as a whole, or made while it is written.

use std::{
    error::Error,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream::BoxStream};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

/// What an answer's body is made of.
///
/// Most are bounded and in memory anyway. One that is large comes in chunks, of which the next is
/// asked for when the caller has taken those before: a slow caller costs one chunk.
pub struct AnswerBody {
    inner: Inner,
    /// When whatever is not taken yet is given up.
    until: Option<Instant>,
}

enum Inner {
    Whole(Full<Bytes>),
    /// Chunks, and how many bytes are to come, where that is known.
    Made(BoxStream<'static, Result<Bytes, BrokenOff>>, Option<u64>),
}

/// The rest of an answer can't be had. Its connection is cut, so that nobody takes what came for the
/// whole.
#[derive(Debug, thiserror::Error)]
#[error("the rest of the answer can't be had")]
pub struct BrokenOff(#[source] Box<dyn Error + Send + Sync>);

impl BrokenOff {
    /// For a reason, which goes to the log.
    #[must_use]
    pub fn because(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

impl AnswerBody {
    /// A body of `length` bytes that is made while it is written. Chunks that are more or fewer bytes
    /// break it off.
    pub fn made(
        length: u64,
        chunks: impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static,
    ) -> Self {
        Self::of(Inner::Made(chunks.boxed(), Some(length)))
    }

    /// A body of a length that nobody knows yet, which is made while it is written. It needs a form
    /// that tells a whole one from one that was broken off: a caller, or a gateway on the way, may
    /// not.
    pub fn unmeasured(
        chunks: impl Stream<Item = Result<Bytes, BrokenOff>> + Send + 'static,
    ) -> Self {
        Self::of(Inner::Made(chunks.boxed(), None))
    }

    /// The same, with an end: at `until` the connection is cut, also while its caller takes nothing
    /// and nothing is asked for.
    #[must_use]
    pub fn until(self, until: Instant) -> Self {
        Self { until: Some(until), ..self }
    }

    fn of(inner: Inner) -> Self {
        Self { inner, until: None }
    }

    pub(crate) fn ends_at(&self) -> Option<Instant> {
        self.until
    }
}

impl Default for AnswerBody {
    fn default() -> Self {
        Self::of(Inner::Whole(Full::default()))
    }
}

impl<T: Into<Bytes>> From<T> for AnswerBody {
    fn from(whole: T) -> Self {
        Self::of(Inner::Whole(Full::new(whole.into())))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let (chunks, left) = match &mut self.inner {
            Inner::Whole(whole) => {
                let frame = ready!(Pin::new(whole).poll_frame(cx));
                return Poll::Ready(frame.map(|frame| frame.map_err(|never| match never {})));
            }
            Inner::Made(_, Some(0)) => return Poll::Ready(None),
            Inner::Made(chunks, Some(left)) => (chunks, left),
            Inner::Made(chunks, None) => {
                let chunk = ready!(chunks.poll_next_unpin(cx));
                return Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)));
            }
        };
        let chunk = ready!(chunks.poll_next_unpin(cx));
        let chunk = chunk.unwrap_or_else(|| Err(BrokenOff::because("it ended before its length")));
        let chunk = chunk.and_then(|chunk| match left.checked_sub(chunk.len() as u64) {
            Some(rest) => {
                *left = rest;
                Ok(Frame::data(chunk))
            }
            None => Err(BrokenOff::because("it went on after its length")),
        });
        if chunk.is_err() {
            *left = 0;
        }
        Poll::Ready(Some(chunk))
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Whole(whole) => whole.is_end_stream(),
            Inner::Made(_, left) => *left == Some(0),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Whole(whole) => whole.size_hint(),
            Inner::Made(_, left) => left.map_or_else(SizeHint::new, SizeHint::with_exact),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::BodyExt;

    use super::*;

    fn made(length: u64, chunks: &'static [&'static [u8]]) -> AnswerBody {
        let chunks = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk)));
        AnswerBody::made(length, stream::iter(chunks))
    }

    async fn reason(body: AnswerBody) -> String {
        body.collect().await.unwrap_err().source().unwrap().to_string()
    }

    #[tokio::test]
    async fn chunks_are_one_body_of_its_length() {
        let body = made(5, &[b"ab", b"", b"cde"]);
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(5), false));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abcde");
        assert_eq!(made(0, &[]).collect().await.unwrap().to_bytes(), "");
    }

    #[tokio::test]
    async fn chunks_of_another_length_break_it_off() {
        assert_eq!(reason(made(5, &[b"ab", b"cd"])).await, "it ended before its length");
        assert_eq!(reason(made(3, &[b"ab", b"cd"])).await, "it went on after its length");
        let failed = stream::iter([Err(BrokenOff::because("no more"))]);
        assert_eq!(reason(AnswerBody::made(1, failed)).await, "no more");
    }

    fn unmeasured(chunks: Vec<Result<&'static [u8], &'static str>>) -> AnswerBody {
        let chunks = chunks.into_iter().map(|chunk| match chunk {
            Ok(chunk) => Ok(Bytes::from_static(chunk)),
            Err(reason) => Err(BrokenOff::because(reason)),
        });
        AnswerBody::unmeasured(stream::iter(chunks))
    }

    #[tokio::test]
    async fn chunks_whose_length_nobody_knows_are_one_body_that_ends_with_them() {
        let body = unmeasured(vec![Ok(b"ab"), Ok(b""), Ok(b"cde")]);
        let hint = body.size_hint();
        assert_eq!((hint.lower(), hint.upper(), body.is_end_stream()), (0, None, false));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abcde");
        assert_eq!(unmeasured(vec![]).collect().await.unwrap().to_bytes(), "");
    }

    #[tokio::test]
    async fn a_body_of_unknown_length_that_breaks_off_gives_what_came_and_then_the_reason() {
        let mut body = unmeasured(vec![Ok(b"ab"), Err("no more")]);
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "ab");
        let reason = body.frame().await.unwrap().unwrap_err();
        assert_eq!(reason.source().unwrap().to_string(), "no more");
        assert!(body.frame().await.is_none());
    }
}
