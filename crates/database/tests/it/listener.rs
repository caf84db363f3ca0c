//! A listener: every hint while it listens, and a word after each time it did not.

use std::time::Duration;

use database::{DatabaseUrl, Hint, Listener};
use socket2::{SockFilter, SockRef};
use test_support::{eventually, postgres::Access};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};

use crate::support::{Fixture, LONG, ROLE};

/// The instruction of a packet filter that takes as many bytes of a packet as it says: none.
const BPF_RETURN: u16 = 6;

fn listen(url: &DatabaseUrl, channel: &str) -> UnboundedReceiver<Hint> {
    let (tell, told) = unbounded_channel();
    let listener = Listener::new(url, channel);
    tokio::spawn(listener.run(move |hint| {
        let _ = tell.send(hint);
    }));
    told
}

async fn next(told: &mut UnboundedReceiver<Hint>) -> Hint {
    timeout(LONG, told.recv()).await.expect("a hint").unwrap()
}

/// A door of our own before the server, and the URL that leads to it.
async fn door(fixture: &Fixture) -> (TcpListener, DatabaseUrl) {
    let port = Access::of_this_test().port;
    let door = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let ours = door.local_addr().unwrap().port();
    let url = fixture.database.url(ROLE).replace(&format!(":{port}/"), &format!(":{ours}/"));
    (door, url.parse().unwrap())
}

async fn notify(fixture: &Fixture, channel: &str, payload: &str) {
    fixture.sql.execute("SELECT pg_notify($1, $2)", &[&channel, &payload]).await.unwrap();
}

#[tokio::test]
async fn a_listener_tells_the_hints_of_its_channel_in_order() {
    let fixture = Fixture::create().await;
    let mut told = listen(&fixture.url(), "mine");
    assert_eq!(next(&mut told).await, Hint::Connected);
    notify(&fixture, "others", "nothing").await;
    for payload in ["a", "", "b"] {
        notify(&fixture, "mine", payload).await;
    }
    for payload in ["a", "", "b"] {
        assert_eq!(next(&mut told).await, Hint::Payload(payload.to_owned()));
    }
}

#[tokio::test]
async fn a_listener_whose_backend_is_killed_listens_again_and_says_so() {
    let fixture = Fixture::create().await;
    let mut told = listen(&fixture.url(), "mine");
    for round in ["a", "b", "c"] {
        assert_eq!(next(&mut told).await, Hint::Connected);
        notify(&fixture, "mine", round).await;
        assert_eq!(next(&mut told).await, Hint::Payload(round.to_owned()));
        fixture.terminate(&fixture.backends().await).await;
        assert_eq!(next(&mut told).await, Hint::Lost);
    }
    assert_eq!(next(&mut told).await, Hint::Connected);
}

#[tokio::test]
async fn a_listener_tries_until_the_server_is_there() {
    let fixture = Fixture::create().await;
    let (door, url) = door(&fixture).await;
    let port = Access::of_this_test().port;
    let mut told = listen(&url, "mine");
    for _ in 0..3 {
        drop(timeout(LONG, door.accept()).await.expect("another try").unwrap());
    }
    assert!(told.try_recv().is_err());

    let (mut here, _) = timeout(LONG, door.accept()).await.expect("another try").unwrap();
    let mut there = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    tokio::spawn(async move { copy_bidirectional(&mut here, &mut there).await });
    assert_eq!(next(&mut told).await, Hint::Connected);
    notify(&fixture, "mine", "a").await;
    assert_eq!(next(&mut told).await, Hint::Payload("a".to_owned()));
}

/// Returns when nothing that was sent is still to be acknowledged: it would be sent again and again, and
/// the other side would hear of us.
async fn all_is_acknowledged(connection: &TcpStream) {
    let ours = connection.local_addr().unwrap().port();
    let theirs = connection.peer_addr().unwrap().port();
    // Both addresses, an open connection, and the bytes that are not acknowledged.
    let nothing = format!(":{ours:04X} 0100007F:{theirs:04X} 01 00000000:");
    eventually(LONG, "the last acknowledgement", async || {
        std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&nothing).then_some(())
    })
    .await;
}

/// A firewall that forgets a connection says so to nobody: our packets go nowhere from then on.
#[tokio::test]
async fn a_listener_notices_within_half_a_minute_that_nothing_comes_back() {
    let fixture = Fixture::create().await;
    let (door, url) = door(&fixture).await;
    let mut told = listen(&url, "mine");
    let (mut here, _) = timeout(LONG, door.accept()).await.expect("a connection").unwrap();
    let mut there = TcpStream::connect(("127.0.0.1", Access::of_this_test().port)).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut here, &mut there) => panic!("it has ended"),
        hint = next(&mut told) => assert_eq!(hint, Hint::Connected),
    }
    all_is_acknowledged(&here).await;
    // The kernel drops whatever arrives here, questions of the kernel on the other side among it.
    let drop_all = [SockFilter::new(BPF_RETURN, 0, 0, 0)];
    SockRef::from(&here).attach_filter(&drop_all).unwrap();
    let lost = timeout(Duration::from_secs(30), told.recv()).await.expect("it was not noticed");
    assert_eq!(lost, Some(Hint::Lost));
}
