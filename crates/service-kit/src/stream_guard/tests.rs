use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    time::{Instant, advance, timeout},
};

use super::{head::HeadLimits, *};

const LIMIT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(3600);

const HEAD: &[u8] = b"PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n";

fn guarded(phase: &Phase) -> (DuplexStream, HeadGuard<DuplexStream>) {
    let (client, server) = duplex(64 * 1024);
    let limits = HeadLimits { time: LIMIT, bytes: 16 * 1024 };
    (client, HeadGuard::new(server, limits, phase.clone()))
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_ends_at_its_deadline() {
    let (mut client, mut guard) = guarded(&Phase::default());
    let began = Instant::now();
    let drip = tokio::spawn(async move {
        while client.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    assert_eq!(guard.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(guard.verdict(), Some(HeadVerdict::Slow));
    assert_eq!(began.elapsed().as_secs(), LIMIT.as_secs());
    drip.abort();
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_byte_is_not_ended() {
    let (_client, mut guard) = guarded(&Phase::default());
    assert!(timeout(LONG, guard.read(&mut [0; 8])).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_request_under_way_may_take_its_time() {
    let phase = Phase::default();
    let (mut client, mut guard) = guarded(&phase);
    client.write_all(HEAD).await.unwrap();
    guard.read_exact(&mut [0; HEAD.len()]).await.unwrap();
    let busy = phase.busy();
    advance(LONG).await;
    client.write_all(b"body").await.unwrap();
    assert_eq!(guard.read(&mut [0; 8]).await.unwrap(), 4);
    drop(busy);
    assert!(timeout(LONG, guard.read(&mut [0; 8])).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_next_head_has_a_deadline_of_its_own() {
    let phase = Phase::default();
    let (mut client, mut guard) = guarded(&phase);
    client.write_all(&[HEAD, b"body"].concat()).await.unwrap();
    guard.read_exact(&mut [0; HEAD.len() + 4]).await.unwrap();
    let busy = phase.busy();
    client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    assert!(timeout(LONG, guard.read(&mut [0; 8])).await.is_err(), "it is not its turn");
    drop(busy);
    let began = Instant::now();
    assert_eq!(guard.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(guard.verdict(), Some(HeadVerdict::Slow));
    assert_eq!(began.elapsed().as_secs(), LIMIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_while_it_is_answered_is_noticed() {
    let phase = Phase::default();
    let (mut client, mut guard) = guarded(&phase);
    client.write_all(&[HEAD, b"body"].concat()).await.unwrap();
    guard.read_exact(&mut [0; HEAD.len() + 4]).await.unwrap();
    let _busy = phase.busy();
    client.write_all(b"GET / HT").await.unwrap();
    drop(client);
    guard.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(guard.verdict(), None);
}

#[tokio::test(start_paused = true)]
async fn a_head_is_looked_at_wherever_it_stands_among_the_bytes() {
    let bad = b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n";
    let all = [HEAD, b"body", HEAD, b"\r\n\r\n", bad].concat();
    for size in [1, 2, 7, all.len()] {
        let (mut client, mut guard) = guarded(&Phase::default());
        let mut read = Vec::new();
        for piece in all.chunks(size) {
            client.write_all(piece).await.unwrap();
            let mut buf = [0; 256];
            while let Ok(got) = timeout(Duration::from_millis(1), guard.read(&mut buf)).await {
                let got = got.unwrap();
                read.extend_from_slice(&buf[..got]);
                if got == 0 {
                    break;
                }
            }
        }
        assert_eq!(read, all[..all.len() - bad.len()], "in pieces of {size}");
        assert!(matches!(guard.verdict(), Some(HeadVerdict::Refused(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_peer_does_not_take_is_cut() {
    let (_client, server) = duplex(16);
    let mut guard = WriteGuard::new(server, LIMIT);
    let began = Instant::now();
    let error = guard.write_all(&[0; 64]).await.unwrap_err();
    assert!(error.get_ref().unwrap().is::<StalledWrite>());
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
