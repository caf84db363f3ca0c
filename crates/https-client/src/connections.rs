//! Connections to one other side: TLS by its own trust roots, without a proxy.

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower::{BoxError, ServiceExt, timeout::Timeout, util::BoxCloneSyncService};

use crate::kept::KeptStream;

/// For how long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(30);

/// Connections that are kept between requests, and the requests that go over them. Clones share
/// them.
pub type Connections = Client<Connector, Full<Bytes>>;

type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<KeptStream>>, BoxError>;

/// Connections that trust `roots` and nothing else, over HTTP/1.1. One stands within `connect`, TLS
/// handshake included, or fails; at most `most_idle` are kept while nobody uses them.
///
/// Nothing is connected yet.
#[must_use]
pub fn connections(roots: RootCertStore, connect: Duration, most_idle: usize) -> Connections {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(most_idle)
        .build(connector(roots, connect))
}

fn connector(roots: RootCertStore, connect: Duration) -> Connector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring serves both TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // A parked poll is silent for up to its whole wait: NATs on the way forget it otherwise.
    tcp.set_keepalive(Some(Duration::from_secs(15)));
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .wrap_connector(tcp.map_response(kept));
    BoxCloneSyncService::new(Timeout::new(https, connect))
}

fn kept(tcp: TokioIo<TcpStream>) -> TokioIo<KeptStream> {
    TokioIo::new(KeptStream::new(tcp.into_inner()))
}

/// Whether a TLS error about the other side's certificate is among the causes: the trust roots do
/// not vouch for it, so it is another server, or its certificate has expired or was replaced.
/// Nothing was sent then.
#[must_use]
pub fn is_refused_certificate(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            use rustls::Error::{InvalidCertificate, NoCertificatesPresented};
            return matches!(tls, InvalidCertificate(_) | NoCertificatesPresented);
        }
        // An I/O error does not name what it holds as its source.
        let held = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match held {
            Some(held) => Some(held),
            None => error.source(),
        };
    }
    false
}
