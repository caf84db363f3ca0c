//! Connections, several at once, and what is counted of them.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{Fault, cluster::Cluster, reply};
use crate::peer::{Received, Reply, locked, read, write};

type Stream = BufReader<TlsStream<TcpStream>>;

pub(super) struct Server {
    pub(super) state: Mutex<State>,
    /// Whether requests wait.
    pub(super) held: watch::Sender<bool>,
    pub(super) acceptor: Mutex<TlsAcceptor>,
    pub(super) connections: Mutex<JoinSet<()>>,
}

pub(super) struct State {
    pub(super) cluster: Cluster,
    pub(super) fault: Option<Fault>,
    pub(super) received: Vec<Received>,
    pub(super) under_way: usize,
    pub(super) most_at_once: usize,
}

impl Server {
    pub(super) fn new(acceptor: TlsAcceptor, cluster: Cluster) -> Self {
        let (fault, received) = (None, Vec::new());
        let state = State { cluster, fault, received, under_way: 0, most_at_once: 0 };
        Self {
            state: Mutex::new(state),
            held: watch::Sender::new(false),
            acceptor: Mutex::new(acceptor),
            connections: Mutex::default(),
        }
    }
}

/// Takes connections for ever.
pub(super) async fn listen(listener: TcpListener, server: Arc<Server>) {
    loop {
        // No file descriptor is left: the test that waits for an answer says so.
        let Ok((connection, _)) = listener.accept().await else { return };
        let ours = Arc::clone(&server);
        let mut connections = locked(&server.connections);
        while connections.try_join_next().is_some() {}
        connections.spawn(async move {
            // A caller that goes away or refuses the certificate is part of the tests.
            let _ended = serve(connection, &ours).await;
        });
    }
}

async fn serve(connection: TcpStream, server: &Server) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let acceptor = locked(&server.acceptor).clone();
    let mut stream = BufReader::new(acceptor.accept(connection).await?);
    while let Some(request) = read(&mut stream).await? {
        let _under_way = UnderWay::begin(server, &request);
        let mut held = server.held.subscribe();
        tokio::select! {
            released = held.wait_for(|held| !held) => drop(released.map_err(io::Error::other)?),
            () = gone(&mut stream) => return Ok(()),
        }
        let reply = {
            let mut state = locked(&server.state);
            let fault = state.fault;
            reply::of(&mut state.cluster, &request, fault)
        };
        write(&mut stream, &reply).await?;
        match reply {
            Reply::Cut(_) => return Ok(()),
            // Whole in its time, or not at all.
            Reply::Silence => {
                gone(&mut stream).await;
                return Ok(());
            }
            Reply::Whole { .. } | Reply::Drip(..) | Reply::Held(..) => {}
        }
    }
    Ok(())
}

/// Returns when the caller has closed. It sends nothing before it has its answer.
async fn gone(stream: &mut Stream) {
    while matches!(stream.fill_buf().await, Ok([_, ..])) {
        let _ignored = stream.read_u8().await;
    }
}

/// A request that is counted.
struct UnderWay<'a>(&'a Server);

impl<'a> UnderWay<'a> {
    fn begin(server: &'a Server, request: &Received) -> Self {
        let mut state = locked(&server.state);
        state.received.push(request.clone());
        state.under_way += 1;
        state.most_at_once = state.most_at_once.max(state.under_way);
        Self(server)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        locked(&self.0.state).under_way -= 1;
    }
}
