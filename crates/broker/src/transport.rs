//! The bytes below AMQP: TCP, and TLS where the URL says so.
//!
//! The AMQP library is given a finished stream. Its own way to connect would speak plain text to an
//! `amqps` URL where it was built without TLS; the runtime that it is given here can't connect.

use std::{
    future, io,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use async_rs::{Runtime, Tokio, util::RuntimeParts};
use futures_util::{Stream, io as amqp_io, task::AtomicWaker};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::{BrokerUrl, Trust};

/// How long the TCP connection and the TLS handshake may take, each.
const STEP_WITHIN: Duration = Duration::from_secs(10);

/// The runtime for the AMQP library.
pub(crate) type AmqpRuntime = Runtime<RuntimeParts<Tokio, Reactor>>;

/// The current runtime of tokio.
pub(crate) fn runtime() -> AmqpRuntime {
    let tokio = Tokio::current();
    Runtime::new(RuntimeParts::new(tokio.clone(), Reactor(tokio)))
}

/// An open stream to a broker, which ends with who holds it.
pub(crate) struct Transport {
    stream: Box<dyn Bytes>,
    hold: Arc<HoldState>,
}

/// Streams that end when the value is dropped, unless they are released. A broker that accepts and
/// says nothing, or says nothing any more, would hold a stream and the library's thread for ever.
pub(crate) struct Hold(Arc<HoldState>);

/// A hold, as seen from its streams.
pub(crate) struct WatchedHold(Arc<HoldState>);

#[derive(Default)]
struct HoldState {
    given_up: AtomicBool,
    released: AtomicBool,
    reader: AtomicWaker,
}

impl Hold {
    pub(crate) fn begin() -> Self {
        Self(Arc::default())
    }

    /// What the streams need to notice the end.
    pub(crate) fn watched(&self) -> WatchedHold {
        WatchedHold(Arc::clone(&self.0))
    }

    /// From here on the stream lives as long as who has it wants.
    pub(crate) fn release(self) {
        self.0.released.store(true, Ordering::SeqCst);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.0.released.load(Ordering::SeqCst) {
            self.0.given_up.store(true, Ordering::SeqCst);
            self.0.reader.wake();
        }
    }
}

trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

impl Transport {
    /// Connects: with TLS where there is a trust, and in plain text only where there is none.
    pub(crate) async fn connect(
        url: &BrokerUrl,
        trust: Option<&Trust>,
        hold: &WatchedHold,
    ) -> io::Result<Self> {
        let tcp = within("connecting", TcpStream::connect((url.host(), url.port()))).await?;
        tcp.set_nodelay(true)?;
        let stream: Box<dyn Bytes> = match trust {
            None => Box::new(tcp),
            Some(Trust(config)) => {
                let name = ServerName::try_from(url.host().to_owned())
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                let connector = TlsConnector::from(Arc::clone(config));
                Box::new(within("the TLS handshake", connector.connect(name, tcp)).await?)
            }
        };
        Ok(Self { stream, hold: Arc::clone(&hold.0) })
    }
}

async fn within<T>(what: &str, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(STEP_WITHIN, work).await {
        Ok(result) => result,
        Err(_) => {
            let text = format!("{what} took longer than {} s", STEP_WITHIN.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }
    }
}

impl amqp_io::AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.hold.reader.register(context.waker());
        if self.hold.given_up.load(Ordering::SeqCst) {
            return Poll::Ready(Err(io::Error::other("the connection was given up")));
        }
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl amqp_io::AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The reactor of tokio with our stream in the place of its own.
#[derive(Clone, Debug)]
pub(crate) struct Reactor(Tokio);

impl async_rs::traits::Reactor for Reactor {
    type TcpStream = Transport;
    type Sleep = <Tokio as async_rs::traits::Reactor>::Sleep;

    fn register<H: io::Read + io::Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl amqp_io::AsyncRead + amqp_io::AsyncWrite + Send + Unpin + 'static> {
        self.0.register(socket)
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.0.sleep(duration)
    }

    fn interval(&self, duration: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(duration)
    }

    fn tcp_connect_addr(
        &self,
        _: SocketAddr,
    ) -> impl Future<Output = io::Result<Transport>> + Send + 'static {
        future::ready(Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "only Transport::connect connects",
        )))
    }
}
