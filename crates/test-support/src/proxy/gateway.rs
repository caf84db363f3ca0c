//! The page of a gateway that has lost its servers.

use std::{io, path::Path, sync::Arc};

use tokio::{io::BufReader, net::TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use super::Shared;
use crate::peer::{Reply, read, write};

pub(super) fn acceptor(certificate: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(io::Error::other)?;
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Answers each request with the page until the fault is lifted, or everything is cut.
pub(super) async fn serve(client: TcpStream, acceptor: TlsAcceptor, shared: &Shared) {
    let mut faults = shared.faults.subscribe();
    let cuts = faults.borrow().cuts;
    tokio::select! {
        _ = faults.wait_for(|faults| faults.cuts != cuts || !faults.html) => {}
        // A caller that goes away is part of every test.
        _ended = answer(client, acceptor, shared) => {}
    }
}

async fn answer(client: TcpStream, acceptor: TlsAcceptor, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut stream = BufReader::new(acceptor.accept(client).await?);
    while read(&mut stream).await?.is_some() {
        shared.counts.pages.one();
        write(&mut stream, &Reply::html(503)).await?;
    }
    Ok(())
}
