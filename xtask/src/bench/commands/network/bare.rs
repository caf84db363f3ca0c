//! The network alone: a server that answers every request with one page, and one that answers every
//! message with another.

use std::{
    convert::Infallible,
    error::Error,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use site_client::roots_from_pem_file;
use test_support::TestCa;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::bench::world::Bench;

/// What a `PUT` of a result and its receipt are on the wire, about.
const REQUEST_BYTES: usize = 640;
const ANSWER_BYTES: usize = 480;

const PAGE: &str = r#"{"commands":[],"nextAfter":0,"nextDigest":"0000000000000000000000000000000000000000000000000000000000000000","lastSeq":0,"cancelRev":0,"serverTime":"2026-01-01T00:00:00.000000Z"}"#;

/// Answers every HTTP request with an empty page.
pub(crate) struct BareServer {
    address: SocketAddr,
    ca_file: PathBuf,
}

impl BareServer {
    pub(crate) async fn start(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        let ca_file = bench.folder().join("bare-ca.pem");
        let address = serve(&ca_file, |stream| async {
            let answer = service_fn(|_: hyper::Request<Incoming>| async {
                let json = Response::builder().header("content-type", "application/json");
                Ok::<_, Infallible>(
                    json.body(Full::new(Bytes::from_static(PAGE.as_bytes())))
                        .expect("a fixed answer"),
                )
            });
            // It ends when the client is gone.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        })?;
        Ok(Self { address, ca_file })
    }

    pub(crate) fn origin(&self) -> String {
        format!("https://{}", self.address)
    }

    pub(crate) fn ca_file(&self) -> PathBuf {
        self.ca_file.clone()
    }
}

/// One TLS connection over which a message goes and its answer comes.
pub(crate) struct RoundTrip {
    stream: client::TlsStream<TcpStream>,
}

impl RoundTrip {
    pub(crate) async fn start(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        let ca_file = bench.folder().join("round-trip-ca.pem");
        let address = serve(&ca_file, |mut stream| async move {
            let mut request = [0; REQUEST_BYTES];
            while stream.read_exact(&mut request).await.is_ok() {
                if answer(&mut stream, &[0; ANSWER_BYTES]).await.is_err() {
                    return;
                }
            }
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots_from_pem_file(&ca_file)?)
            .with_no_client_auth();
        let tcp = TcpStream::connect(address).await?;
        tcp.set_nodelay(true)?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
        Ok(Self { stream })
    }

    pub(crate) async fn once(&mut self) -> io::Result<()> {
        self.stream.write_all(&[0; REQUEST_BYTES]).await?;
        self.stream.flush().await?;
        self.stream.read_exact(&mut [0; ANSWER_BYTES]).await?;
        Ok(())
    }
}

async fn answer(stream: &mut server::TlsStream<TcpStream>, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Serves TLS connections in a thread of its own, which ends with the process.
fn serve<F>(
    ca_file: &Path,
    connection: impl Fn(server::TlsStream<TcpStream>) -> F + Send + 'static,
) -> Result<SocketAddr, Box<dyn Error>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let ca = TestCa::new();
    ca.write_to(ca_file)?;
    let issued = ca.issue(&["127.0.0.1"]);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(issued.cert_pem.as_bytes())?],
            PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes())?,
        )?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::spawn(move || {
        runtime.block_on(async {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            while let Ok((tcp, _)) = listener.accept().await {
                if tcp.set_nodelay(true).is_err() {
                    continue;
                }
                if let Ok(stream) = acceptor.accept(tcp).await {
                    tokio::spawn(connection(stream));
                }
            }
        });
    });
    Ok(address)
}
