//! The other end of a connection, which answers what a test says.
//!
//! It stands for gateways, cuts and servers that lie: what the real Site API can't be made to do.
//! It knows no route and no rule.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use site_client::Origin;
use test_support::TestCa;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: String,
    /// The path and the query.
    pub(crate) target: String,
    /// By their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What a request is answered with.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A whole answer; the connection stays open.
    Whole { status: u16, content_type: &'static str, extra_head: String, body: Vec<u8> },
    /// These bytes, and the end of the connection.
    Cut(Vec<u8>),
    /// Nothing, for as long as the other side waits.
    Silence,
}

impl Reply {
    pub(crate) fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "application/json", body)
    }

    pub(crate) fn problem(status: u16, code: &str, retryable: bool) -> Self {
        let body = format!(
            "{{\"type\":\"urn:site-control:problem:{code}\",\"title\":\"T\",\"status\":{status},\
             \"detail\":\"D\",\"code\":\"{code}\",\"retryable\":{retryable},\
             \"source\":\"site-api\"}}"
        );
        Self::new(status, "application/problem+json", body)
    }

    /// The page of a gateway that knows nothing of the Site API.
    pub(crate) fn html(status: u16) -> Self {
        Self::new(status, "text/html", "<html>Something went wrong</html>")
    }

    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self::Whole { status, content_type, extra_head: String::new(), body: body.into() }
    }
}

type Answer = Box<dyn FnMut(&Received) -> Reply + Send>;

/// A listener on 127.0.0.1 whose requests are answered by one function, one after the other.
pub(crate) struct Peer {
    origin: Origin,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Peer {
    /// Listens with a certificate of `ca`, for as long as the test's runtime lives.
    pub(crate) async fn start(
        ca: &TestCa,
        answer: impl FnMut(&Received) -> Reply + Send + 'static,
    ) -> Self {
        let acceptor = acceptor(ca);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(Box::new(answer)));
        let log = Arc::clone(&received);
        tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
                let log = Arc::clone(&log);
                tokio::spawn(async move {
                    // A caller that goes away or refuses the certificate is part of the tests.
                    let _ended = serve(connection, acceptor, &answer, &log).await;
                });
            }
        });
        let origin = Origin::parse(&format!("https://127.0.0.1:{port}")).unwrap();
        Self { origin, received }
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin.clone()
    }

    /// Every request so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
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
        log.lock().unwrap().push(request.clone());
        let reply = (answer.lock().unwrap())(&request);
        match reply {
            Reply::Whole { status, content_type, extra_head, body } => {
                let head = format!(
                    "HTTP/1.1 {status} Status\r\ncontent-type: {content_type}\r\n\
                     content-length: {}\r\n{extra_head}\r\n",
                    body.len()
                );
                stream.write_all(&[head.as_bytes(), &body].concat()).await?;
                stream.flush().await?;
            }
            Reply::Cut(bytes) => {
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
            Reply::Silence => {
                // Ends when the caller closes.
                tokio::time::timeout(Duration::from_secs(600), stream.read_u8()).await??;
            }
        }
    }
    Ok(())
}

async fn read(stream: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Option<Received>> {
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
    let mut words = lines[0].split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let headers: BTreeMap<_, _> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Received { method, target, headers, body }))
}

fn acceptor(ca: &TestCa) -> TlsAcceptor {
    let issued = ca.issue(&["127.0.0.1"]);
    let certificate = CertificateDer::from_pem_slice(issued.cert_pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}
