//! What goes over the wire where no broker answers.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use beto::{Caller, CouldNotAsk, Setup, SetupError};
use broker::{Broker, BrokerUrl, Trust};
use test_support::TestCa;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::support::{LONG, ask, execute, outcome, start};

const BUDGET: Duration = Duration::from_secs(2);

fn setup(scheme: &str, address: SocketAddr, user: &str) -> Result<Setup, SetupError> {
    let url: BrokerUrl = format!("{scheme}://{user}:hunter2@{address}").parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    TestCa::new().write_to(&path).unwrap();
    let trust = url.is_tls().then(|| Trust::from_pem_file(&path).unwrap());
    let broker = Broker::new(url, trust).unwrap();
    Ok(Setup::new(Caller::ResourceProvisioning, broker)?.with_budget(BUDGET))
}

async fn accept(listener: &TcpListener) -> TcpStream {
    timeout(LONG, listener.accept()).await.unwrap().unwrap().0
}

#[tokio::test]
async fn an_amqps_url_never_speaks_plain_text() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let beto = start(setup("amqps", address, "resource_provisioning").unwrap());
    for attempt in 0..3 {
        let asking = ask(&beto, execute("member-in-clear"));
        let mut stream = accept(&listener).await;
        let mut bytes = Vec::new();
        // Until the other side gives up.
        timeout(LONG, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
        // A TLS handshake record of version 3.x, and then nothing of what AMQP would say.
        assert_eq!(bytes[..2], [0x16, 0x03], "attempt {attempt}");
        for word in ["AMQP", "hunter2", "resource_provisioning", "member-in-clear"] {
            let found = bytes.windows(word.len()).any(|part| part == word.as_bytes());
            assert!(!found, "attempt {attempt} says {word}");
        }
        let (told, _) = outcome(asking).await;
        assert!(matches!(told, Err(CouldNotAsk::NotConnected(_))), "{told:?}");
    }
}

#[tokio::test]
async fn a_peer_that_accepts_and_says_nothing_costs_no_more_than_the_budget() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let beto = start(setup("amqp", address, "resource_provisioning").unwrap());
    let mut silent = accept(&listener).await;
    let began = Instant::now();
    let (told, _) = outcome(ask(&beto, execute("m"))).await;
    assert!(matches!(told, Err(CouldNotAsk::NotConnected(_))), "{told:?}");
    assert!(began.elapsed() < BUDGET * 2, "{:?}", began.elapsed());
    // Given up, not forgotten: the connection ends.
    let mut bytes = Vec::new();
    timeout(LONG, silent.read_to_end(&mut bytes)).await.unwrap().unwrap();
    assert_eq!(bytes, b"AMQP\x00\x00\x09\x01");
}

#[tokio::test]
async fn the_brokers_user_is_the_caller() {
    let address = "127.0.0.1:1".parse().unwrap();
    for user in ["source_control", "guest", "resource_provisioning2"] {
        let refused = setup("amqp", address, user).unwrap_err();
        assert_eq!(refused, SetupError::User { expected: Caller::ResourceProvisioning });
        assert_eq!(refused.to_string(), "the broker's user must be resource_provisioning");
    }
}
