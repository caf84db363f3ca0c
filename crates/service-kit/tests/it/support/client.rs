//! A client that writes the bytes that a test wants it to write.

use std::{io, net::SocketAddr, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::GENEROUS;

pub(crate) struct Client {
    stream: TlsStream<TcpStream>,
    unread: Vec<u8>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(
        address: SocketAddr,
        ca_pem: &str,
        protocols: &[&[u8]],
    ) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let tcp = TcpStream::connect(address).await?;
        let name = "localhost".try_into().unwrap();
        let connected = TlsConnector::from(Arc::new(config)).connect(name, tcp);
        let stream = timeout(GENEROUS, connected).await.expect("the handshake ends")?;
        Ok(Self { stream, unread: Vec::new() })
    }

    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.stream.get_ref().1.alpn_protocol()
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await?;
        self.stream.flush().await
    }

    pub(crate) async fn get(&mut self, target: &str) -> Received {
        self.send(format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await.unwrap();
        self.receive().await
    }

    /// Reads one whole answer.
    pub(crate) async fn receive(&mut self) -> Received {
        loop {
            if let Some((received, length)) = Received::parse(&self.unread) {
                self.unread.drain(..length);
                return received;
            }
            let before = self.unread.len();
            let read = timeout(GENEROUS, self.stream.read_buf(&mut self.unread));
            read.await.expect("an answer comes").unwrap();
            let text = String::from_utf8_lossy(&self.unread);
            assert!(self.unread.len() > before, "ended in the middle of an answer: {text:?}");
        }
    }

    /// Takes the next bytes, at most so many, and says how many came.
    pub(crate) async fn take(&mut self, most: usize) -> usize {
        let mut bytes = vec![0; most];
        let read = timeout(GENEROUS, self.stream.read(&mut bytes));
        read.await.expect("something comes").unwrap()
    }

    /// Waits for the end of the connection and gives what came before it.
    pub(crate) async fn closed(&mut self) -> Vec<u8> {
        let end = timeout(GENEROUS, async {
            while self.stream.read_buf(&mut self.unread).await.is_ok_and(|read| read > 0) {}
        });
        end.await.expect("the connection ends");
        std::mem::take(&mut self.unread)
    }
}

impl Received {
    fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut received = Self { status, head, body: Vec::new() };
        let length = match received.header("content-length") {
            Some(length) => length.parse().unwrap(),
            None => 0,
        };
        received.body = bytes.get(end..end + length)?.to_vec();
        Some((received, end + length))
    }

    /// A header's value in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}
