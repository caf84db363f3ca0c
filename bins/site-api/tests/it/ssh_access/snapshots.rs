//! Snapshots that are larger than what the sockets between the two sides hold: whoever reads slowly is
//! waited for, and two may do so at once.

use serde_json::json;
use site_protocol::paths;
use test_support::eventually;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::timeout,
};

use super::{get, propagate, served};
use crate::support::{Api, LONG, Place, SITE};

/// Some 20 MB of lines.
const KEYS: usize = 100_000;

/// Puts so many keys in force at the first place of the feed.
async fn fill(place: &Place) {
    propagate(place).await;
    let sql = format!(
        "INSERT INTO ssh_access.site_key (site, unix_user, key_id, member_id, public_key)
         SELECT '{SITE}', 'u' || lpad(n::text, 7, '0'), 'key_' || lpad(n::text, 25, '0') || '0', 'm' || n,
                'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
           FROM generate_series(1, {KEYS}) n;
         ANALYZE ssh_access.site_key"
    );
    place.database.superuser().await.batch_execute(&sql).await.unwrap();
}

/// Somebody who has begun to read a snapshot.
struct Reader<S> {
    stream: S,
    came: Vec<u8>,
}

/// Asks for a snapshot, and reads as far as the first key.
async fn begin(api: &Api, bearer: &str) -> Reader<impl AsyncRead + Unpin> {
    let mut connection = api.wire.open().await;
    connection.write(&get(paths::SSH_SNAPSHOT, bearer).bytes()).await;
    let mut reader = Reader { stream: connection.into_stream(), came: Vec::new() };
    while !reader.text().contains("keyId") {
        let read = timeout(LONG, reader.stream.read_buf(&mut reader.came)).await.unwrap().unwrap();
        assert!(read > 0, "it ended before the first key: {}", reader.text());
    }
    assert!(reader.text().starts_with("HTTP/1.1 200 "), "{:.200}", reader.text());
    reader
}

impl<S: AsyncRead + Unpin> Reader<S> {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.came).into_owned()
    }

    /// Reads what is still to come, until the other side ends it, in whatever way.
    async fn rest(mut self) -> String {
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = timeout(LONG, self.stream.read(&mut chunk)).await.unwrap() {
            self.came.extend_from_slice(&chunk[..read]);
        }
        self.text()
    }
}

/// Whether an answer is whole by its form, and a whole snapshot by what it says.
fn is_whole(answer: &str) -> [bool; 2] {
    let last = format!("{{\"complete\":true,\"count\":{KEYS}}}\n");
    [answer.ends_with("\r\n0\r\n\r\n"), answer.contains(&last)]
}

#[tokio::test]
async fn a_snapshot_whose_reader_pauses_is_whole_in_the_end() {
    let (api, bearer) = served().await;
    fill(&api.place).await;
    let reader = begin(&api, &bearer).await;
    // While it pauses everything else goes on.
    assert_eq!(api.send(&get(paths::SSH_CHANGES, &bearer)).await.status, 200);
    let answer = reader.rest().await;
    assert_eq!(is_whole(&answer), [true, true]);
    assert_eq!(answer.matches("\"keyId\"").count(), KEYS);
}

#[tokio::test]
async fn a_snapshot_is_broken_off_when_its_bearer_is_revoked_in_the_middle() {
    let (api, bearer) = served().await;
    fill(&api.place).await;
    let reader = begin(&api, &bearer).await;
    api.place.edit_grants(|grants| {
        let of_the_agent = grants.iter_mut().filter(|grant| grant["scope"] == "ssh-access");
        of_the_agent.for_each(|grant| grant["revokedAt"] = json!("2026-01-03T00:00:00Z"));
    });
    eventually(LONG, "the revocation to be in force", async || {
        let answer = api.send(&get(paths::SSH_CHANGES, &bearer)).await;
        (answer.status == 401).then_some(())
    })
    .await;
    let answer = reader.rest().await;
    assert_eq!(is_whole(&answer), [false, false]);
    assert!(answer.matches("\"keyId\"").count() < KEYS);
}

#[tokio::test]
async fn two_snapshots_are_read_at_once_and_a_reader_that_leaves_makes_room() {
    let (api, bearer) = served().await;
    fill(&api.place).await;
    let (first, second) = (begin(&api, &bearer).await, begin(&api, &bearer).await);
    let refused = api.send(&get(paths::SSH_SNAPSHOT, &bearer)).await.problem();
    assert_eq!((refused.code.as_str(), refused.retryable), ("overloaded", true));
    // What is small needs no place.
    assert_eq!(api.send(&get(paths::SSH_CHANGES, &bearer)).await.status, 200);
    drop(first);
    let third = eventually(LONG, "the place of the reader that left", async || {
        let answer = api.send(&get(paths::SSH_SNAPSHOT, &bearer)).await;
        (answer.status == 200).then_some(())
    });
    third.await;
    assert_eq!(is_whole(&second.rest().await), [true, true]);
}
