//! The client over a faulty network: what each fault of the proxy is to it, and that the proxy
//! counts what it did.

use site_client::{CallError, StoredResult};
use test_support::{Issued, Proxy, ProxyHandle, ProxySetup, eventually};

use super::*;

const GENEROUS: Duration = Duration::from_secs(60);

/// Two servers of one Site, the proxy in front of them, and a client that knows the proxy only.
struct Network {
    ca: TestCa,
    peers: [Peer; 2],
    proxy: Proxy,
    faults: ProxyHandle,
    site: Site,
}

impl Network {
    /// The servers take every result and have nothing to tell.
    async fn start() -> Self {
        Self::answering(|_| Reply::json(201, receipt("cmd_4", b"{}"))).await
    }

    async fn answering(answer: fn(&Received) -> Reply) -> Self {
        let ca = TestCa::new();
        let peers = [Peer::start(&ca, answer).await, Peer::start(&ca, answer).await];
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let issued: Issued = ca.issue(&["127.0.0.1"]);
        issued.write_to(&certificate, &key).unwrap();
        let upstreams = peers.iter().map(|peer| address(peer.origin())).collect();
        let setup = ProxySetup { upstreams, certificate, key, seed: 7 };
        let proxy = Proxy::start(setup).await.unwrap();
        let site = client(&ca, &proxy.origin(), Timeouts::default()).await;
        Self { ca, peers, faults: proxy.handle(), proxy, site }
    }

    async fn store(&self) -> Result<StoredResult, CallError> {
        self.site.client.store_result(&writer(), &result(b"{}"), None).await
    }

    fn received(&self) -> [usize; 2] {
        self.peers.each_ref().map(|peer| peer.received().len())
    }
}

fn address(origin: &str) -> std::net::SocketAddr {
    origin.trim_start_matches("https://").parse().unwrap()
}

fn is_transport<T>(answer: &Result<T, CallError>) -> bool {
    matches!(answer, Err(CallError::Transport(_)))
}

#[tokio::test]
async fn connections_go_to_the_servers_in_turn() {
    let network = Network::start().await;
    for expected in [[1, 0], [1, 1], [2, 1], [2, 2]] {
        let one = client(&network.ca, &network.proxy.origin(), Timeouts::default()).await;
        one.client.store_result(&writer(), &result(b"{}"), None).await.unwrap();
        assert_eq!(network.received(), expected);
    }
    assert_eq!(network.faults.counts().connections, 4);
}

#[tokio::test]
async fn a_server_that_is_gone_is_passed_over() {
    let network = Network::start().await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    network.ca.issue(&["127.0.0.1"]).write_to(&certificate, &key).unwrap();
    let there = address(network.peers[0].origin());
    for (upstreams, unreachable) in [(vec![gone, there], 0), (vec![gone, gone], 1)] {
        let (certificate, key) = (certificate.clone(), key.clone());
        let setup = ProxySetup { upstreams, certificate, key, seed: 7 };
        let proxy = Proxy::start(setup).await.unwrap();
        let site = client(&network.ca, &proxy.origin(), Timeouts::default()).await;
        let stored = site.client.store_result(&writer(), &result(b"{}"), None).await;
        assert_eq!(is_transport(&stored), unreachable == 1, "{stored:?}");
        assert_eq!(proxy.handle().counts().unreachable, unreachable);
    }
}

#[tokio::test]
async fn an_answer_is_cut_after_the_server_has_done_what_was_asked() {
    let network = Network::start().await;
    network.store().await.unwrap();
    network.faults.cut_next_answer();
    let stored = network.store().await;
    assert!(is_transport(&stored), "{stored:?}");
    assert_eq!(network.received(), [2, 0], "the server has it");
    assert_eq!(network.faults.counts().answers_cut, 1);
    network.store().await.unwrap();
    assert_eq!(network.faults.counts().answers_cut, 1, "one was asked for");
}

#[tokio::test]
async fn what_a_handshake_brings_is_not_taken_for_an_answer() {
    let network = Network::start().await;
    for _ in 0..32 {
        let fresh = client(&network.ca, &network.proxy.origin(), Timeouts::default()).await;
        network.faults.cut_next_answer();
        let before = network.received().iter().sum::<usize>();
        let cut_before = network.faults.counts().answers_cut;
        let stored = fresh.client.store_result(&writer(), &result(b"{}"), None).await;
        let cut = network.faults.counts().answers_cut - cut_before;
        assert_eq!(is_transport(&stored), cut == 1, "{stored:?}");
        assert_eq!(network.received().iter().sum::<usize>(), before + 1, "it was passed on");
        network.faults.cut_no_answer();
    }
}

#[tokio::test]
async fn a_cut_ends_a_call_that_waits() {
    let network = Network::answering(|_| Reply::Silence).await;
    let (faults, waiting) = (
        network.faults.clone(),
        tokio::spawn(async move {
            let stored = network.store().await;
            (network, stored)
        }),
    );
    let there = async || (faults.counts().connections == 1).then_some(());
    eventually(GENEROUS, "the call", there).await;
    faults.cut_all();
    let (network, stored) = waiting.await.unwrap();
    assert!(is_transport(&stored), "{stored:?}");
    assert_eq!((network.faults.counts().cut, network.faults.counts().answers_cut), (1, 0));
}

#[tokio::test]
async fn a_black_hole_holds_calls_and_lets_them_go_on_when_it_is_lifted() {
    let network = Network::start().await;
    network.store().await.unwrap();
    let faults = network.faults.clone();
    faults.black_hole(true);
    let impatient = Timeouts { answer: Duration::from_millis(100), ..Timeouts::default() };
    let site = client(&network.ca, &network.proxy.origin(), impatient).await;
    let stored = site.client.store_result(&writer(), &result(b"{}"), None).await;
    assert!(is_transport(&stored), "{stored:?}");
    let held = faults.counts().held;
    assert!(held > 0);
    // On the connection that is there already.
    let waiting = tokio::spawn(async move {
        let stored = network.store().await;
        (network, stored)
    });
    let more = async || (faults.counts().held > held).then_some(());
    eventually(GENEROUS, "the call on the old connection", more).await;
    assert!(!waiting.is_finished());
    faults.black_hole(false);
    let (network, stored) = waiting.await.unwrap();
    stored.unwrap();
    assert_eq!(network.received()[0], 2, "on the same connection");
}

#[tokio::test]
async fn a_refused_connection_ends_before_the_server_hears_of_it() {
    let network = Network::start().await;
    network.store().await.unwrap();
    network.faults.refuse(true);
    network.store().await.unwrap();
    let site = client(&network.ca, &network.proxy.origin(), Timeouts::default()).await;
    let stored = site.client.store_result(&writer(), &result(b"{}"), None).await;
    assert!(is_transport(&stored), "{stored:?}");
    assert_eq!((network.received(), network.faults.counts().refused), ([2, 0], 1));
    network.faults.refuse(false);
    site.client.store_result(&writer(), &result(b"{}"), None).await.unwrap();
}

#[tokio::test]
async fn the_page_of_a_gateway_comes_instead_of_the_server_until_it_is_lifted() {
    let network = Network::start().await;
    network.store().await.unwrap();
    network.faults.html_503(true);
    let mut pages = 0;
    // The first call may still see the old connection end.
    eventually(GENEROUS, "three pages", async || {
        let stored = network.store().await;
        assert!(stored.is_err());
        pages += u64::from(matches!(stored, Err(CallError::NotOurs { status: 503, .. })));
        (pages == 3).then_some(())
    })
    .await;
    assert_eq!((network.received(), network.faults.counts().pages), ([1, 0], 3));
    network.faults.html_503(false);
    let again = async || network.store().await.ok();
    eventually(GENEROUS, "the server itself", again).await;
}

#[tokio::test]
async fn a_delayed_network_is_slow_and_loses_nothing() {
    let network = Network::start().await;
    network.store().await.unwrap();
    assert_eq!(network.faults.counts().delayed, 0);
    network.faults.delay(Duration::from_millis(40));
    let started = tokio::time::Instant::now();
    for _ in 0..10 {
        network.store().await.unwrap();
    }
    // Twice ten waits of 20 ms on average: that all are nearly nothing does not happen.
    assert!(started.elapsed() > Duration::from_millis(40), "{:?}", started.elapsed());
    let delayed = network.faults.counts().delayed;
    assert!(delayed >= 20, "{delayed}");
    network.faults.delay(Duration::ZERO);
    network.store().await.unwrap();
    assert_eq!(network.faults.counts().delayed, delayed);
}
