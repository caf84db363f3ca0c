//! A gate on the way to PostgreSQL that a test shuts and opens.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::copy_bidirectional,
    runtime::{Builder, Runtime},
    task::{JoinHandle, JoinSet},
};

/// Passes connections on while it is open. Shut, nobody listens and every connection is cut, as
/// where the server's machine is gone.
pub(crate) struct Gate {
    address: SocketAddr,
    server: SocketAddr,
    serving: Option<JoinHandle<()>>,
    /// One of its own: the test's stands still while its database is dropped, and a connection
    /// that nobody passes on holds the server up.
    runtime: Option<Runtime>,
}

impl Gate {
    /// A shut gate to the server of a database's URL.
    pub(crate) fn shut_before(url: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        // The port is taken again when the gate opens; nobody else is told of it.
        let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        let server = server_of(url).parse().unwrap();
        Self { address, server, serving: None, runtime: Some(runtime) }
    }

    /// An open gate to the server of a database's URL.
    pub(crate) fn open_before(url: &str) -> Self {
        let mut gate = Self::shut_before(url);
        gate.open();
        gate
    }

    /// The URL that leads through the gate.
    pub(crate) fn url(&self, url: &str) -> String {
        url.replace(&server_of(url), &self.address.to_string())
    }

    pub(crate) fn open(&mut self) {
        self.serve(pass);
    }

    /// Returns when nobody listens any more.
    pub(crate) async fn shut(&mut self) {
        self.stop().await;
        assert!(TcpStream::connect(self.address).is_err());
    }

    /// Cuts every connection, and from then on each new one at once; tells how many those were.
    pub(crate) async fn turn_away(&mut self) -> Arc<AtomicUsize> {
        self.stop().await;
        let turned_away = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&turned_away);
        self.serve(|listener, _| async move {
            loop {
                drop(listener.accept().await.unwrap());
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        turned_away
    }

    async fn stop(&mut self) {
        let serving = self.serving.take().unwrap();
        serving.abort();
        assert!(serving.await.unwrap_err().is_cancelled());
    }

    fn serve<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        work: impl FnOnce(tokio::net::TcpListener, SocketAddr) -> F + Send + 'static,
    ) {
        let listener = TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let server = self.server;
        let serving = async move {
            work(tokio::net::TcpListener::from_std(listener).unwrap(), server).await;
        };
        self.serving = self.runtime.as_ref().map(|runtime| runtime.spawn(serving));
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn pass(listener: tokio::net::TcpListener, server: SocketAddr) {
    let mut ways = JoinSet::new();
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        ways.spawn(async move {
            let mut server = tokio::net::TcpStream::connect(server).await.unwrap();
            // Either side may cut it.
            let _ended = copy_bidirectional(&mut client, &mut server).await;
        });
    }
}

/// The address in a URL: between the credential and the database's name.
fn server_of(url: &str) -> String {
    let (_, rest) = url.split_once('@').unwrap();
    rest.split_once('/').unwrap().0.to_owned()
}
