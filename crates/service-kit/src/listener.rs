//! Accepting connections within their limits, with TLS or without.

use std::{future::poll_fn, io, net::SocketAddr, pin::pin, sync::Arc, task::ready, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    connection,
    drain::Shutdown,
    limits::Limits,
    seats::{SeatHandle, Seats},
    service::Service,
    stream_guard::WriteGuard,
};

/// So many handshakes are computed at the same time. They are the dearest thing that a stranger can
/// ask for, and a flood of them must leave a thread to those who are known.
const HANDSHAKES_IN_A_STEP: usize = 1;

/// How long to wait after an `accept` that failed for want of something, such as descriptors.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);

/// A bound listener.
pub struct Listener {
    socket: TcpListener,
    limits: Limits,
}

impl Listener {
    /// Binds an address. Port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// When the address can't be bound.
    pub async fn bind(address: SocketAddr, limits: Limits) -> io::Result<Self> {
        Ok(Self { socket: TcpListener::bind(address).await?, limits })
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    ///
    /// When the system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves HTTPS. `tls` is asked for its configuration at each connection, so that a renewed
    /// certificate is taken up. Ends after the process began to drain and every connection has
    /// finished.
    pub async fn serve_tls(
        self,
        tls: impl Fn() -> Arc<rustls::ServerConfig>,
        service: Arc<Service>,
        shutdown: Shutdown,
    ) {
        self.serve(|| Some(TlsAcceptor::from(tls())), service, shutdown).await;
    }

    /// Serves plain HTTP, for the admin listener. Ends as [`Listener::serve_tls`] does.
    pub async fn serve_plain(self, service: Arc<Service>, shutdown: Shutdown) {
        self.serve(|| None, service, shutdown).await;
    }

    async fn serve(
        self,
        tls: impl Fn() -> Option<TlsAcceptor>,
        service: Arc<Service>,
        shutdown: Shutdown,
    ) {
        let Self { socket, limits } = self;
        let seats = Seats::new(limits.connections);
        let turns = Arc::new(Semaphore::new(HANDSHAKES_IN_A_STEP));
        let mut connections = JoinSet::new();
        let mut waiting = None;
        loop {
            tokio::select! {
                biased;
                () = shutdown.draining() => break,
                Some(ended) = connections.join_next() => reap(ended),
                stream = accept(&socket), if waiting.is_none() => waiting = Some(stream),
                mut seat = seats.take(), if waiting.is_some() => if let Some(stream) = waiting.take() {
                    let (service, shutdown) = (Arc::clone(&service), shutdown.clone());
                    let tls = tls().map(|tls| (tls, Arc::clone(&turns)));
                    let handle = seat.handle();
                    connections.spawn(async move {
                        let open = Open::new();
                        let end = tokio::select! {
                            end = connect(stream, tls, limits, service, shutdown, handle) => end,
                            () = seat.given_away() => "evicted",
                        };
                        open.end(end);
                    });
                }
            }
        }
        drop(socket);
        while let Some(ended) = connections.join_next().await {
            reap(ended);
        }
    }
}

/// The next connection. After a failure it pauses and goes on.
async fn accept(socket: &TcpListener) -> TcpStream {
    loop {
        match socket.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(error = %error, "connection.accept_failed");
                sleep(ACCEPT_BACK_OFF).await;
            }
        }
    }
}

/// Whether a failed `accept` says something about that connection only.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// From the accepted connection to its end, for which it gives the label of a metric.
async fn connect(
    stream: TcpStream,
    tls: Option<(TlsAcceptor, Arc<Semaphore>)>,
    limits: Limits,
    service: Arc<Service>,
    shutdown: Shutdown,
    seat: SeatHandle,
) -> &'static str {
    // Without it an answer could wait for the peer's delayed acknowledgement; a socket that
    // refuses it is still served.
    let _ = stream.set_nodelay(true);
    let stream = WriteGuard::new(stream, limits.stalled_write);
    let Some((tls, turns)) = tls else {
        return connection::serve(stream, limits, service, shutdown, seat).await;
    };
    let handshake = timeout(limits.handshake, in_turn(&turns, tls.accept(stream)));
    let handshake = tokio::select! {
        handshake = handshake => handshake,
        // Nothing was asked yet, so nothing is lost.
        () = shutdown.draining() => return "drained",
    };
    match handshake {
        Ok(Ok(stream)) => connection::serve(stream, limits, service, shutdown, seat).await,
        Ok(Err(error)) => {
            // Anybody can cause one: not worth more than this.
            tracing::debug!(error = %error, "connection.handshake_failed");
            "handshake_failed"
        }
        Err(_) => "handshake_timeout",
    }
}

/// Runs a future step by step, each when it is its turn. It keeps no turn while it waits for
/// something else.
async fn in_turn<F: Future>(turns: &Semaphore, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut turn = Box::pin(turns.acquire());
    poll_fn(|cx| {
        let held = ready!(turn.as_mut().poll(cx));
        let step = future.as_mut().poll(cx);
        turn.set(turns.acquire());
        drop(held);
        step
    })
    .await
}

/// Counts a connection while it is open.
struct Open {
    end: &'static str,
}

impl Open {
    fn new() -> Self {
        metrics::gauge!("connections").increment(1.0);
        Self { end: "cut" }
    }

    fn end(mut self, end: &'static str) {
        self.end = end;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::gauge!("connections").decrement(1.0);
        metrics::counter!("connections_ended_total", "end" => self.end).increment(1);
    }
}

fn reap(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("connection.panicked");
    }
}
