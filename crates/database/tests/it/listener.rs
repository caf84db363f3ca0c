//! A listener: every hint while it listens, and a word after each time it did not.

use database::{DatabaseUrl, Hint, Listener};
use test_support::postgres::Access;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};

use crate::support::{Fixture, LONG, ROLE};

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
    let port = Access::of_this_test().port;
    let door = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let ours = door.local_addr().unwrap().port();
    let url = fixture.database.url(ROLE).replace(&format!(":{port}/"), &format!(":{ours}/"));
    let mut told = listen(&url.parse().unwrap(), "mine");
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
