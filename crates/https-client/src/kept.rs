//! A TCP connection that knows whether it has brought an answer before.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use http::Extensions;
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Whether the connection of a request has brought an answer. Whoever sent the request finds it
/// among the extensions of the answer, or in the error.
#[derive(Clone, Default)]
pub(crate) struct HasAnswered(Arc<AtomicBool>);

/// A connection with that mark.
pub struct KeptStream {
    tcp: TcpStream,
    has_answered: HasAnswered,
}

impl HasAnswered {
    /// That of the connection that brought an answer: notes this one, and says whether there was one
    /// before.
    pub(crate) fn once_more(extensions: &Extensions) -> bool {
        extensions.get::<Self>().is_some_and(|mark| mark.0.swap(true, Ordering::Relaxed))
    }

    /// Whether a request failed on a connection that had brought an answer before.
    pub(crate) fn before(error: &hyper_util::client::legacy::Error) -> bool {
        let mut extensions = Extensions::new();
        if let Some(connected) = error.connect_info() {
            connected.get_extras(&mut extensions);
        }
        extensions.get::<Self>().is_some_and(|mark| mark.0.load(Ordering::Relaxed))
    }
}

impl KeptStream {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        Self { tcp, has_answered: HasAnswered::default() }
    }
}

impl Connection for KeptStream {
    fn connected(&self) -> Connected {
        self.tcp.connected().extra(self.has_answered.clone())
    }
}

impl AsyncRead for KeptStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for KeptStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
