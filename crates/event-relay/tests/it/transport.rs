//! What goes over the wire before a broker has answered.

use std::{net::SocketAddr, time::Duration};

use broker::{Broker, BrokerError, BrokerUrl, Trust};
use test_support::{TestCa, eventually};
use tokio::{io::AsyncReadExt, net::TcpListener};

use crate::support::{MemoryOutbox, Running};

const LONG: Duration = Duration::from_secs(60);

fn trust() -> Trust {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    TestCa::new().write_to(&path).unwrap();
    Trust::from_pem_file(&path).unwrap()
}

fn url(scheme: &str, address: SocketAddr) -> BrokerUrl {
    format!("{scheme}://relay:hunter2@{address}").parse().unwrap()
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The first bytes that a relay sends to who accepts and says nothing.
async fn first_bytes(listener: &TcpListener) -> [u8; 5] {
    let (mut stream, _) = tokio::time::timeout(LONG, listener.accept()).await.unwrap().unwrap();
    let mut bytes = [0; 5];
    tokio::time::timeout(LONG, stream.read_exact(&mut bytes)).await.unwrap().unwrap();
    bytes
}

#[tokio::test]
async fn an_amqps_url_never_speaks_plain_text() {
    let (listener, address) = listener().await;
    let broker = Broker::new(url("amqps", address), Some(trust())).unwrap();
    let relay = Running::start(&MemoryOutbox::default(), broker);
    for attempt in 0..3 {
        let bytes = first_bytes(&listener).await;
        // A TLS handshake record of version 3.x.
        assert_eq!(bytes[..2], [0x16, 0x03], "attempt {attempt}: {bytes:?}");
    }
    drop(relay);
}

#[tokio::test]
async fn an_amqp_url_speaks_amqp_at_once() {
    let (listener, address) = listener().await;
    let broker = Broker::new(url("amqp", address), None).unwrap();
    let relay = Running::start(&MemoryOutbox::default(), broker);
    assert_eq!(first_bytes(&listener).await, *b"AMQP\0");
    drop(relay);
}

#[tokio::test]
async fn a_url_and_a_ca_file_have_to_fit_together() {
    let address = "127.0.0.1:1".parse().unwrap();
    assert_eq!(Broker::new(url("amqps", address), None).unwrap_err(), BrokerError::NoTrust);
    let unused = Broker::new(url("amqp", address), Some(trust())).unwrap_err();
    assert_eq!(unused, BrokerError::TrustUnused);
}

#[tokio::test]
async fn a_peer_that_accepts_and_says_nothing_is_given_up() {
    let (listener, address) = listener().await;
    let broker = Broker::new(url("amqp", address), None).unwrap();
    let relay = Running::start(&MemoryOutbox::default(), broker);
    let (mut held, _) = tokio::time::timeout(LONG, listener.accept()).await.unwrap().unwrap();
    let trouble = async || relay.trouble();
    let reason = eventually(LONG, "the login to be given up", trouble).await;
    assert_eq!(reason, "the broker did not finish the login within 20 s");
    // Given up, not forgotten: the connection ends.
    let mut bytes = Vec::new();
    tokio::time::timeout(LONG, held.read_to_end(&mut bytes)).await.unwrap().unwrap();
    assert_eq!(bytes, b"AMQP\x00\x00\x09\x01");
}
