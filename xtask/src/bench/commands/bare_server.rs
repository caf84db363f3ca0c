//! The floor of a footprint: a server of `tokio-rustls` that knows one answer and nothing else, in a
//! process of its own.

use std::{
    error::Error,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use clap::Args;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

/// Where it listens, and its certificate.
#[derive(Args)]
pub(crate) struct BareServer {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    certificate: PathBuf,
    #[arg(long)]
    key: PathBuf,
}

/// The command that runs it: this program again.
pub(crate) fn command(
    listen: SocketAddr,
    certificate: &Path,
    key: &Path,
) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "bare-server", "--listen", &listen.to_string(), "--certificate"]);
    command.arg(certificate).arg("--key").arg(key);
    Ok(command)
}

impl BareServer {
    /// Serves until it is killed.
    pub(crate) async fn serve(&self) -> Result<(), Box<dyn Error>> {
        let chain = CertificateDer::pem_file_iter(&self.certificate)?.collect::<Result<_, _>>()?;
        let key = PrivateKeyDer::from_pem_file(&self.key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        let tls = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(self.listen).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            let tls = tls.clone();
            // A caller that goes away ends its connection and nothing else.
            tokio::spawn(async move { answer(tls, stream).await.ok() });
        }
    }
}

/// Answers every head alike.
async fn answer(tls: TlsAcceptor, stream: TcpStream) -> std::io::Result<()> {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    let mut stream = tls.accept(stream).await?;
    let mut head = Vec::new();
    while stream.read_buf(&mut head).await? > 0 {
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            stream.write_all(ANSWER).await?;
            stream.flush().await?;
        }
    }
    Ok(())
}
