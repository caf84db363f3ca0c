//! HTTP/1.1 by hand: bytes in, bytes out, so that a test can send what no library would.

use std::{io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use serde_json::Value;
use site_protocol::{Code, PROBLEM_CONTENT_TYPE, Problem};
use tokio::{
    io::{
        AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt,
        BufReader,
    },
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore, crypto,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use super::LONG;

/// How long a silent server is given before our side of a connection is closed.
const SILENCE: Duration = Duration::from_millis(200);

/// A request in the making. Its connection is closed after the answer.
#[derive(Clone)]
pub(crate) struct Request {
    line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, target: &str) -> Self {
        let headers = vec![("host".to_owned(), "localhost".to_owned())];
        Self { line: format!("{method} {target} HTTP/1.1"), headers, body: Vec::new() }
            .header("connection", "close")
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(header, _)| header != name);
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn method(mut self, method: &str) -> Self {
        let (_, rest) = self.line.split_once(' ').unwrap();
        self.line = format!("{method} {rest}");
        self
    }

    pub(crate) fn query(mut self, query: &str) -> Self {
        self.line = self.line.replace(" HTTP/1.1", &format!("?{query} HTTP/1.1"));
        self
    }

    /// As the Runtime of a session.
    pub(crate) fn writer(self, generation: u64, session: &str) -> Self {
        self.without("runtime-generation")
            .header("runtime-generation", &generation.to_string())
            .header("runtime-session", session)
    }

    /// The body with its length, in place of an earlier one.
    pub(crate) fn body(self, body: &[u8]) -> Self {
        let mut request =
            self.without("content-length").header("content-length", &body.len().to_string());
        request.body = body.to_vec();
        request
    }

    /// The head alone, whatever it says of a body.
    pub(crate) fn body_left_out(mut self) -> Vec<u8> {
        self.body.clear();
        self.bytes()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!("{}\r\n{}\r\n", self.line, headers.collect::<String>());
        [head.as_bytes(), &self.body].concat()
    }

    fn is_head(&self) -> bool {
        self.line.starts_with("HEAD ")
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The only header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(header, _)| header == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} is there twice");
        value
    }

    fn content_length(&self) -> usize {
        self.header("content-length").unwrap_or("0").parse().unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The problem that it must be, with everything that each problem has.
    pub(crate) fn problem(&self) -> Problem {
        assert_eq!(self.header("content-type"), Some(PROBLEM_CONTENT_TYPE), "{self:?}");
        let problem: Problem = serde_json::from_slice(&self.body).unwrap();
        let code = Code::ALL.iter().find(|code| code.as_str() == problem.code);
        let code = code.unwrap_or_else(|| panic!("an unknown code: {problem:?}"));
        assert_eq!(problem.kind, format!("urn:site-control:problem:{}", problem.code));
        assert_eq!((problem.status, self.status), (code.status(), code.status()), "{problem:?}");
        assert_eq!(problem.retryable, code.retryable());
        assert_eq!(problem.source, "site-api");
        assert_eq!(self.header("x-request-id"), Some(problem.request_id.as_str()));
        assert!(!problem.request_id.is_empty());
        assert_eq!(self.header("cache-control"), Some("no-store"));
        if problem.status == 503 {
            assert!(self.header("retry-after").is_some_and(|s| s.parse::<u64>().unwrap() > 0));
            assert!(problem.retry_after_ms.is_some());
        }
        problem
    }

    /// The code of the problem that it must be.
    pub(crate) fn code(&self) -> String {
        self.problem().code
    }
}

/// The way to a TLS listener.
#[derive(Clone)]
pub(crate) struct Wire {
    address: SocketAddr,
    connector: TlsConnector,
}

/// An open connection.
pub(crate) struct Connection(BufReader<TlsStream<TcpStream>>);

impl Wire {
    /// Trusts the certificates in `ca` and nothing else.
    pub(crate) fn to(address: SocketAddr, ca: &Path) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { address, connector: TlsConnector::from(Arc::new(config)) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn open(&self) -> Connection {
        self.try_open().await.unwrap()
    }

    /// As [`Wire::open`], where the server may not want to or may not be trusted.
    pub(crate) async fn try_open(&self) -> io::Result<Connection> {
        let name = ServerName::try_from("localhost").unwrap();
        let tcp = TcpStream::connect(self.address).await?;
        let stream = timeout(LONG, self.connector.connect(name, tcp)).await.unwrap()?;
        Ok(Connection(BufReader::new(stream)))
    }

    /// Sends a request on a connection of its own and reads the answer.
    pub(crate) async fn send(&self, request: &Request) -> Answer {
        let bytes = request.bytes();
        let mut connection = self.open().await;
        connection.write(&bytes).await;
        let answer = timeout(LONG, read_answer(&mut connection.0, request.is_head())).await;
        answer.unwrap().unwrap_or_else(|| {
            panic!("no answer to {:.200}", String::from_utf8_lossy(&bytes));
        })
    }

    /// Sends any bytes and reads what comes back, see [`plain_bytes`].
    pub(crate) async fn send_bytes(&self, bytes: &[u8], answered: bool) -> Vec<Answer> {
        let mut connection = self.open().await;
        connection.write(bytes).await;
        read_all(&mut connection.0, answered).await
    }
}

impl Connection {
    /// Writes as far as the server takes it: one that has heard enough answers and closes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        write(&mut self.0, bytes).await;
    }

    /// What is below, for a test that waits for its end.
    pub(crate) fn into_stream(self) -> impl AsyncRead + Unpin {
        self.0
    }

    /// Waits for an interim answer (1xx).
    pub(crate) async fn interim(&mut self) {
        let line = timeout(LONG, read_line(&mut self.0)).await.unwrap().unwrap();
        assert!(line.starts_with("HTTP/1.1 1"), "{line}");
        assert_eq!(timeout(LONG, read_line(&mut self.0)).await.unwrap().unwrap(), "");
    }

    /// The head of the next answer, whose body is left where it is: [`Connection::body`].
    pub(crate) async fn head(&mut self) -> Answer {
        timeout(LONG, read_answer(&mut self.0, true)).await.unwrap().unwrap()
    }

    /// The body of an answer whose head was read.
    pub(crate) async fn body(&mut self, head: &Answer) -> Vec<u8> {
        let mut body = vec![0; head.content_length()];
        timeout(LONG, self.0.read_exact(&mut body)).await.unwrap().unwrap();
        body
    }

    /// The next answer; none where the connection ends first, in whatever way.
    pub(crate) async fn maybe_answer(&mut self) -> Option<Answer> {
        read_answer(&mut self.0, false).await
    }

    /// The next answer; none where the connection ends first.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        timeout(LONG, read_answer(&mut self.0, false)).await.unwrap()
    }
}

/// Sends a request over plain TCP, as to the admin listener.
pub(crate) async fn plain(address: SocketAddr, request: &Request) -> Answer {
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    stream.write_all(&request.bytes()).await.unwrap();
    timeout(LONG, read_answer(&mut stream, false)).await.unwrap().unwrap()
}

/// Sends any bytes over plain TCP and reads what comes back until the server closes the connection.
/// Ours is closed where the server says nothing for a while: it may be waiting for more. What must
/// be `answered` gets time for that first.
pub(crate) async fn plain_bytes(address: SocketAddr, bytes: &[u8], answered: bool) -> Vec<Answer> {
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    write(&mut stream, bytes).await;
    read_all(&mut stream, answered).await
}

/// Writes as far as the server takes it.
async fn write(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    let written = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    let _heard_enough = timeout(LONG, written).await.unwrap();
}

async fn read_all(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    answered: bool,
) -> Vec<Answer> {
    let mut came = Vec::new();
    let mut chunk = [0; 16 * 1024];
    let mut open = true;
    loop {
        let awaited = answered && read_answer(&mut came.as_slice(), false).await.is_none();
        let within = if open && !awaited { SILENCE } else { LONG };
        match timeout(within, stream.read(&mut chunk)).await {
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(count)) => came.extend_from_slice(&chunk[..count]),
            Err(_) if open => {
                open = false;
                let _gone = stream.shutdown().await;
            }
            Err(_) => panic!("the server keeps a connection that we have closed"),
        }
    }
    let mut rest = came.as_slice();
    let mut answers = Vec::new();
    while let Some(answer) = read_answer(&mut rest, false).await {
        answers.push(answer);
    }
    answers
}

/// Reads one answer after interim ones (1xx); none where the connection ends before its last byte.
async fn read_answer(stream: &mut (impl AsyncBufRead + Unpin), head_only: bool) -> Option<Answer> {
    loop {
        let line = read_line(stream).await?;
        let mut words = line.split(' ');
        assert!(words.next().unwrap().starts_with("HTTP/1."), "not an answer: {line:?}");
        let status = words.next().unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = read_line(stream).await?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        if status < 200 {
            continue;
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if !head_only {
            answer.body = vec![0; answer.content_length()];
            stream.read_exact(&mut answer.body).await.ok()?;
        }
        return Some(answer);
    }
}

/// A line without its end; none where there is no whole one.
async fn read_line(stream: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).await.ok()?;
    let line = line.strip_suffix(b"\r\n")?;
    Some(String::from_utf8_lossy(line).into_owned())
}
