//! What the tests share: a service with test routes, in memory or behind a real listener.

mod client;
mod routes;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use ring::rand::SystemRandom;
use serde_json::Value;
use service_kit::{
    Limits, Listener, RequestIds, Response, Router, Service, Shutdown, drain::Trigger, tls,
};
use test_support::TestCa;
use tokio::{task::JoinHandle, time::timeout};

pub(crate) use client::{Client, Received};
pub(crate) use routes::{Gate, MADE_BYTES, MADE_CHUNK, MADE_UNTIL, routes};

/// Longer than anything takes that goes well.
pub(crate) const GENEROUS: Duration = Duration::from_secs(30);

pub(crate) fn request_ids() -> RequestIds {
    RequestIds::new(&random()).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the one place of these tests that makes it")]
pub(crate) fn random() -> SystemRandom {
    SystemRandom::new()
}

/// A service that is only called, without a listener.
pub(crate) struct InMemory {
    pub(crate) service: Arc<Service>,
    pub(crate) trigger: Trigger,
}

impl InMemory {
    pub(crate) fn of(router: Router, requests: usize) -> Self {
        let (trigger, shutdown) = Shutdown::new();
        let service = Service::new(router, requests, request_ids(), shutdown);
        Self { service, trigger }
    }

    pub(crate) async fn call(&self, request: Request<Full<Bytes>>) -> Response {
        let request = request.map(|body| body.map_err(|never| match never {}).boxed_unsync());
        self.service.answer(request).await
    }

    pub(crate) async fn get(&self, target: &str) -> Response {
        self.call(request(Method::GET, target)).await
    }
}

pub(crate) fn request(method: Method, target: &str) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri(target).body(Full::default()).unwrap()
}

pub(crate) async fn json(response: Response) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

/// A service behind a TLS listener on the loopback address.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) gate: Gate,
    pub(crate) trigger: Trigger,
    ca: TestCa,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(limits: Limits) -> Self {
        let ca = TestCa::new();
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        ca.issue(&["localhost"]).write_to(&cert, &key).unwrap();
        let config = tls::server_config(&cert, &key).unwrap();

        let gate = Gate::default();
        let (trigger, shutdown) = Shutdown::new();
        let service = Service::new(routes(&gate), 256, request_ids(), shutdown.clone());
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), limits).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            listener.serve_tls(move || Arc::clone(&config), service, shutdown).await;
        });
        Self { address, gate, trigger, ca, task }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address, &self.ca.cert_pem(), &[b"http/1.1"]).await.unwrap()
    }

    pub(crate) async fn connect_offering(&self, protocols: &[&[u8]]) -> std::io::Result<Client> {
        Client::connect(self.address, &self.ca.cert_pem(), protocols).await
    }

    /// Waits until the listener and its connections have ended.
    pub(crate) async fn ended(self) {
        timeout(GENEROUS, self.task).await.expect("the listener ends").unwrap();
    }
}
