//! The other end of a connection, which answers what a test says.
//!
//! It stands for gateways, cuts and servers that lie: what a real server can't be made to do. It
//! knows no route and no rule.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::TestCa;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its method.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// By their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// What a request is answered with.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A whole answer; the connection stays open.
    Whole {
        /// The status.
        status: u16,
        /// The header `content-type`.
        content_type: &'static str,
        /// More lines of the head, each with its line break.
        extra_head: String,
        /// The body.
        body: Vec<u8>,
    },
    /// These bytes, and the end of the connection.
    Cut(Vec<u8>),
    /// Nothing, for as long as the other side waits.
    Silence,
    /// These bytes, one after the other with this pause, and then nothing.
    Drip(Vec<u8>, Duration),
    /// This one as soon as the test gives a permit, which is used up.
    Held(Arc<Semaphore>, Box<Reply>),
}

impl Reply {
    /// A whole answer in JSON.
    pub fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "application/json", body)
    }

    /// A problem in the form of the Site API.
    pub fn problem(status: u16, code: &str, retryable: bool) -> Self {
        let body = format!(
            "{{\"type\":\"urn:site-control:problem:{code}\",\"title\":\"T\",\"status\":{status},\
             \"detail\":\"D\",\"code\":\"{code}\",\"retryable\":{retryable},\
             \"source\":\"site-api\"}}"
        );
        Self::new(status, "application/problem+json", body)
    }

    /// The page of a gateway that knows nothing of the Site API.
    pub fn html(status: u16) -> Self {
        Self::new(status, "text/html", "<html>Something went wrong</html>")
    }

    /// A whole answer.
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self::Whole { status, content_type, extra_head: String::new(), body: body.into() }
    }
}

type Answer = Box<dyn FnMut(&Received) -> Reply + Send>;

/// A listener on 127.0.0.1 whose requests are answered by one function, one after the other.
pub struct Peer {
    origin: String,
    received: Arc<Mutex<Vec<Received>>>,
    connections: Arc<AtomicUsize>,
}

impl Peer {
    /// Listens with a certificate of `ca`, for as long as the test's runtime lives.
    ///
    /// # Panics
    ///
    /// When the machine has no free port.
    pub async fn start(
        ca: &TestCa,
        answer: impl FnMut(&Received) -> Reply + Send + 'static,
    ) -> Self {
        let acceptor = acceptor(ca);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(Box::new(answer)));
        let log = Arc::clone(&received);
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            loop {
                // No file descriptor is left: the test that waits for this peer says so.
                let Ok((connection, _)) = listener.accept().await else { return };
                count.fetch_add(1, Ordering::Relaxed);
                let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
                let log = Arc::clone(&log);
                tokio::spawn(async move {
                    // A caller that goes away or refuses the certificate is part of the tests.
                    let _ended = serve(connection, acceptor, &answer, &log).await;
                });
            }
        });
        Self { origin: format!("https://127.0.0.1:{port}"), received, connections }
    }

    /// `https://127.0.0.1` and its port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// How many connections it was offered so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Every request so far.
    pub fn received(&self) -> Vec<Received> {
        locked(&self.received).clone()
    }
}

async fn serve(
    connection: TcpStream,
    acceptor: TlsAcceptor,
    answer: &Mutex<Answer>,
    log: &Mutex<Vec<Received>>,
) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut stream = BufReader::new(acceptor.accept(connection).await?);
    while let Some(request) = read(&mut stream).await? {
        locked(log).push(request.clone());
        let mut reply = (locked(answer))(&request);
        while let Reply::Held(permits, held) = reply {
            permits.acquire().await.map_err(io::Error::other)?.forget();
            reply = *held;
        }
        write(&mut stream, &reply).await?;
        match reply {
            Reply::Cut(_) => return Ok(()),
            Reply::Silence | Reply::Drip(..) => {
                // Ends when the caller closes.
                tokio::time::timeout(Duration::from_secs(600), stream.read_u8()).await??;
            }
            Reply::Whole { .. } | Reply::Held(..) => {}
        }
    }
    Ok(())
}

/// Writes what there is of a reply.
pub(crate) async fn write(
    stream: &mut (impl AsyncWriteExt + Unpin),
    reply: &Reply,
) -> io::Result<()> {
    match reply {
        Reply::Whole { status, content_type, extra_head, body } => {
            let head = format!(
                "HTTP/1.1 {status} Status\r\ncontent-type: {content_type}\r\n\
                 content-length: {}\r\n{extra_head}\r\n",
                body.len()
            );
            stream.write_all(&[head.as_bytes(), body].concat()).await?;
            stream.flush().await
        }
        Reply::Cut(bytes) => {
            stream.write_all(bytes).await?;
            stream.shutdown().await
        }
        Reply::Drip(bytes, pause) => {
            for byte in bytes {
                stream.write_all(&[*byte]).await?;
                stream.flush().await?;
                tokio::time::sleep(*pause).await;
            }
            Ok(())
        }
        // Who answers waits for the permit.
        Reply::Silence | Reply::Held(..) => Ok(()),
    }
}

/// Reads a request; none where the other side has closed.
pub(crate) async fn read(
    stream: &mut (impl AsyncBufReadExt + Unpin),
) -> io::Result<Option<Received>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut lines = lines.into_iter();
    let start = lines.next().ok_or_else(malformed)?;
    let mut words = start.split(' ').map(str::to_owned);
    let method = words.next().ok_or_else(malformed)?;
    let target = words.next().ok_or_else(malformed)?;
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_lowercase(), value.to_owned()))
        })
        .collect();
    let length = headers.get("content-length").map(|length| length.parse());
    let length = length.transpose().map_err(|_| malformed())?;
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    Ok(Some(Received { method, target, headers, body }))
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no HTTP/1.1 request")
}

/// A test that failed while it held the lock has said so.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes connections with a new certificate of an authority for 127.0.0.1.
pub(crate) fn acceptor(ca: &TestCa) -> TlsAcceptor {
    let issued = ca.issue(&["127.0.0.1"]);
    let certificate = CertificateDer::from_pem_slice(issued.cert_pem.as_bytes())
        .expect("what was issued just now is PEM");
    let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes())
        .expect("what was issued just now is PEM");
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key is the certificate's");
    TlsAcceptor::from(Arc::new(config))
}
