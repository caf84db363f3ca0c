use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    time::{Instant, advance, timeout},
};

use super::{
    framing::{Head, head},
    head::HeadLimits,
    *,
};

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

/// How many bytes are read where a head comes in pieces of a size.
fn work(bytes: &[u8], piece: usize) -> usize {
    let mut lines = Lines::default();
    for piece in (0..bytes.len()).step_by(piece).map(|from| from + piece) {
        let judged = lines.are_to_be_judged(&bytes[..piece.min(bytes.len())]);
        assert!(!judged, "after {piece} bytes");
    }
    lines.work
}

#[test]
fn twice_as_much_of_a_head_is_twice_the_work_in_whatever_pieces_it_comes() {
    let lines =
        |line: &str, count| format!("GET / HTTP/1.1\r\n{}", line.repeat(count)).into_bytes();
    let kinds: [&dyn Fn(usize) -> Vec<u8>; 5] = [
        &|n| lines("a:\r\n", n),
        &|n| lines("name: and its value\r\n", n),
        &|n| [lines("", 0), b"long: ".to_vec(), vec![b'x'; n * 16]].concat(),
        &|n| [b"GET /".to_vec(), vec![b'x'; n * 16]].concat(),
        &|n| b"\r\n".repeat(n * 8),
    ];
    for (kind, bytes) in kinds.iter().enumerate() {
        for piece in [1, 2, 3, 7, 64, 1000] {
            let (once, twice) = (bytes(45), bytes(90));
            let (one, two) = (work(&once, piece), work(&twice, piece));
            assert!(two <= 2 * one + 2 * piece + 64, "{kind} by {piece}: {one}, then {two}");
            assert!(two <= 4 * twice.len(), "{kind} by {piece}: {two} for {} bytes", twice.len());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_guard_reads_a_head_that_comes_line_by_line_a_few_times_only() {
    let (mut client, mut guard) = guarded(&Phase::default());
    let head = format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(90));
    for line in head.split_inclusive('\n') {
        client.write_all(line.as_bytes()).await.unwrap();
        assert!(timeout(Duration::from_millis(1), guard.read(&mut [0; 8])).await.is_err());
    }
    assert!(guard.work() <= 4 * head.len(), "{} for {}", guard.work(), head.len());
}

#[test]
fn at_each_line_end_a_head_is_judged_where_it_can_be() {
    for bytes in [
        &b"GET / HTTP/1.1\r\nhost: a\r\nx: y\r\n\r\nrest\n"[..],
        b"\r\n\n\r\nGET / HTTP/1.1\nhost: a\n\n",
        b"GET / HTTP/1.1\r\nhost: a\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\nx: y\r\n",
        b"GET  / HTTP/1.1\r\nhost: a\r\n",
        b"\r\rGET / HTTP/1.1\r\n",
        b"\x16\x03\x01\n",
        b"\r\n\r",
        &[&b"GET / HTTP/1.1\r\n"[..], &b"a: b\r\n".repeat(120)].concat(),
    ] {
        for size in [1, 2, 5, bytes.len()] {
            let mut lines = Lines::default();
            for piece in (0..bytes.len()).step_by(size).map(|from| from + size) {
                let come = &bytes[..piece.min(bytes.len())];
                let judged = lines.are_to_be_judged(come);
                let whole = head(come) != Head::Partial;
                let text = come.escape_ascii();
                assert!(whole || !judged, "judged for nothing: {text}");
                assert!(judged || !whole || come.last() != Some(&b'\n'), "not judged: {text}");
                if whole {
                    break;
                }
            }
        }
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
