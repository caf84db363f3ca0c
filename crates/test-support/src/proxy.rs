//! The network between a Runtime and its Site API, with the faults that networks have.
//!
//! It passes bytes on and can't read them: TLS goes through it from end to end. Only the page of a
//! gateway, [`ProxyHandle::html_503`], is its own; for that it has the Site's certificate.

mod counts;
mod gateway;
mod relay;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use crate::Random;

use counts::Counts;
pub use counts::ProxyCounts;

/// What a proxy stands in front of.
#[derive(Clone, Debug)]
pub struct ProxySetup {
    /// Where connections go, one after the other in turn. One that does not answer is passed over.
    pub upstreams: Vec<SocketAddr>,
    /// The Site's certificate, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// Every drawn time follows from it.
    pub seed: u64,
}

/// A proxy on 127.0.0.1. It ends with the value, and so do its connections.
pub struct Proxy {
    handle: ProxyHandle,
    accepting: JoinHandle<()>,
}

/// Switches the faults of a proxy and counts what they hit.
#[derive(Clone)]
pub struct ProxyHandle {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    faults: watch::Sender<Faults>,
    answers_to_cut: AtomicU32,
    counts: Counts,
}

/// What lasts until it is lifted, and how often everything was cut.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    longest_delay: Duration,
    black_hole: bool,
    refusing: bool,
    html: bool,
    cuts: u64,
}

impl Proxy {
    /// Listens on a free port, without any fault.
    ///
    /// # Errors
    ///
    /// When there is no free port, or the certificate can't be read.
    pub async fn start(setup: ProxySetup) -> io::Result<Self> {
        let acceptor = gateway::acceptor(&setup.certificate, &setup.key)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let shared = Arc::new(Shared {
            faults: watch::Sender::new(Faults::default()),
            answers_to_cut: AtomicU32::new(0),
            counts: Counts::default(),
        });
        let handle = ProxyHandle { address: listener.local_addr()?, shared: Arc::clone(&shared) };
        let accepting = tokio::spawn(accept(listener, setup, acceptor, shared));
        Ok(Self { handle, accepting })
    }

    /// What switches its faults.
    #[must_use]
    pub fn handle(&self) -> ProxyHandle {
        self.handle.clone()
    }

    /// The origin of the Site API, as a Runtime reaches it through the proxy.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("https://{}", self.handle.address)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.handle.cut_all();
    }
}

impl ProxyHandle {
    /// From now on each piece waits for a time below `longest`, in either direction; zero ends it.
    pub fn delay(&self, longest: Duration) {
        self.set(|faults| faults.longest_delay = longest);
    }

    /// Resets every connection that there is, once.
    pub fn cut_all(&self) {
        self.set(|faults| faults.cuts += 1);
    }

    /// Cuts one more answer: a request is passed on, and when the server answers, both sides are
    /// reset and the answer goes nowhere. The server has done what was asked, and the caller does
    /// not know.
    pub fn cut_next_answer(&self) {
        self.shared.answers_to_cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets the answers that are still to be cut.
    pub fn cut_no_answer(&self) {
        self.shared.answers_to_cut.store(0, Ordering::Relaxed);
    }

    /// While it is on, connections are accepted, nothing is passed on and nothing is closed.
    pub fn black_hole(&self, on: bool) {
        self.set(|faults| faults.black_hole = on);
    }

    /// While it is on, new connections are reset before their first byte.
    pub fn refuse(&self, on: bool) {
        self.set(|faults| faults.refusing = on);
    }

    /// While it is on, each request gets `503 text/html`, as a gateway answers that has lost its
    /// servers. The connections that there are come to their end at either switch.
    pub fn html_503(&self, on: bool) {
        self.set(|faults| faults.html = on);
    }

    /// What the faults have hit so far.
    #[must_use]
    pub fn counts(&self) -> ProxyCounts {
        self.shared.counts.read()
    }

    fn set(&self, change: impl FnOnce(&mut Faults)) {
        self.shared.faults.send_modify(change);
    }
}

impl Shared {
    /// Whether this answer is to be cut; it is then the one that was asked for.
    fn takes_answer(&self) -> bool {
        let take = |left: u32| left.checked_sub(1);
        self.answers_to_cut.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

async fn accept(
    listener: TcpListener,
    setup: ProxySetup,
    acceptor: TlsAcceptor,
    shared: Arc<Shared>,
) {
    let mut random = Random::from_seed(setup.seed);
    for turn in 0.. {
        // No file descriptor is left: whoever calls through this proxy says so.
        let Ok((client, _)) = listener.accept().await else { return };
        shared.counts.connections.one();
        let faults = *shared.faults.borrow();
        if faults.refusing {
            shared.counts.refused.one();
            reset(&client);
            continue;
        }
        let mut upstreams = setup.upstreams.clone();
        let first = turn % upstreams.len().max(1);
        upstreams.rotate_left(first);
        let shared = Arc::clone(&shared);
        let (acceptor, random) = (acceptor.clone(), random.split());
        tokio::spawn(async move {
            if faults.html {
                gateway::serve(client, acceptor, &shared).await;
            } else {
                relay::serve(client, &upstreams, &shared, random, faults).await;
            }
        });
    }
}

/// Makes the close that follows a reset, as a line that breaks does.
fn reset(connection: &TcpStream) {
    // One that the other side has closed already can't be reset any more.
    let _ = connection.set_zero_linger();
}
