use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    time::{Instant, advance, timeout},
};

use super::*;

const LIMIT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(3600);

fn cut(error: &io::Error) -> Cut {
    *error.get_ref().unwrap().downcast_ref().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_is_cut_at_its_deadline() {
    let (mut client, server) = duplex(64);
    let mut guard = HeadGuard::new(server, LIMIT, Phase::default());
    let began = Instant::now();
    let drip = tokio::spawn(async move {
        while client.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let mut buf = [0; 8];
    let error = loop {
        if let Err(error) = guard.read(&mut buf).await {
            break error;
        }
    };
    assert_eq!(cut(&error), Cut::SlowHead);
    assert_eq!(began.elapsed().as_secs(), LIMIT.as_secs());
    drip.abort();
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_byte_is_not_cut() {
    let (_client, server) = duplex(64);
    let mut guard = HeadGuard::new(server, LIMIT, Phase::default());
    assert!(timeout(LONG, guard.read(&mut [0; 8])).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_request_under_way_may_take_its_time() {
    let (mut client, server) = duplex(64);
    let phase = Phase::default();
    let mut guard = HeadGuard::new(server, LIMIT, phase.clone());
    client.write_all(b"head").await.unwrap();
    guard.read_exact(&mut [0; 4]).await.unwrap();
    let busy = phase.busy();
    advance(LONG).await;
    client.write_all(b"body").await.unwrap();
    assert_eq!(guard.read(&mut [0; 8]).await.unwrap(), 4);
    drop(busy);
    assert!(timeout(LONG, guard.read(&mut [0; 8])).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_next_head_has_a_deadline_of_its_own() {
    let (mut client, server) = duplex(64);
    let phase = Phase::default();
    let mut guard = HeadGuard::new(server, LIMIT, phase.clone());
    client.write_all(b"first").await.unwrap();
    guard.read_exact(&mut [0; 5]).await.unwrap();
    drop(phase.busy());
    advance(LONG).await;
    client.write_all(b"second").await.unwrap();
    guard.read_exact(&mut [0; 6]).await.unwrap();
    let began = Instant::now();
    let error = guard.read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(cut(&error), Cut::SlowHead);
    assert_eq!(began.elapsed().as_secs(), LIMIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_peer_does_not_take_is_cut() {
    let (_client, server) = duplex(16);
    let mut guard = WriteGuard::new(server, LIMIT);
    let began = Instant::now();
    let error = guard.write_all(&[0; 64]).await.unwrap_err();
    assert_eq!(cut(&error), Cut::StalledWrite);
    assert_eq!(began.elapsed().as_secs(), LIMIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_a_little_at_a_time_is_served_to_the_end() {
    let (mut client, server) = duplex(16);
    let mut guard = WriteGuard::new(server, LIMIT);
    let reader = tokio::spawn(async move {
        let mut taken = 0;
        let mut buf = [0; 4];
        while taken < 640 {
            tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
            taken += client.read(&mut buf).await.unwrap();
        }
    });
    guard.write_all(&[0; 640]).await.unwrap();
    reader.await.unwrap();
}
