//! What an agent has made durable.

use std::{future::pending, time::Duration};

use ssh_access::{
    AcknowledgeError, Acknowledgement, Attested, Cursor, Digest, Failure, Failures, KeyId, Window,
};

use crate::support::{Fixture, applied, changes, member, set_digest, site, snapshot, unix_user};

fn plain(cursor: Cursor) -> Acknowledgement {
    Acknowledgement {
        cursor,
        chain_digest: cursor.digest(),
        set_digest: None,
        failures: Failures::default(),
    }
}

#[tokio::test]
async fn it_moves_forward_only() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 3, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let head = changes(&feed, Cursor::START).await.head;
    let middle = feed.changes(Cursor::START, 2, Duration::ZERO, pending()).await.unwrap().next;
    let stored = feed.acknowledge(&plain(Cursor::START)).await.unwrap();
    assert_eq!((stored.cursor, stored.head, stored.attested), (Cursor::START, head, None));
    assert_eq!(feed.acknowledge(&plain(middle)).await.unwrap().cursor, middle);
    assert_eq!(feed.acknowledge(&plain(head)).await.unwrap().cursor, head);
    for older in [Cursor::START, middle, head] {
        assert_eq!(feed.acknowledge(&plain(older)).await.unwrap().cursor, head);
    }
    assert_eq!(fixture.count("SELECT seq FROM ssh_access.site_ack").await, 3);
}

#[tokio::test]
async fn an_agent_that_was_there_before_the_feed_acknowledges_that_it_has_nothing() {
    let fixture = Fixture::create().await;
    let stored = fixture.feed().acknowledge(&plain(Cursor::START)).await.unwrap();
    assert_eq!((stored.cursor, stored.head), (Cursor::START, Cursor::START));
    assert_eq!(fixture.count("SELECT seq FROM ssh_access.site_ack").await, 0);
}

#[tokio::test]
async fn a_cursor_or_a_digest_of_another_history_is_refused() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 3, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let head = changes(&feed, Cursor::START).await.head;
    let other = Digest::from_bytes([7; 32]);
    let wrong = |cursor: Cursor| plain(cursor);
    for acknowledgement in [
        wrong(Cursor::new(3, other).unwrap()),
        wrong(Cursor::new(2, other).unwrap()),
        wrong(Cursor::new(4, head.digest()).unwrap()),
        Acknowledgement { chain_digest: other, ..plain(head) },
        Acknowledgement { chain_digest: Digest::ZERO, ..plain(head) },
    ] {
        let refusal = feed.acknowledge(&acknowledgement).await.unwrap_err();
        assert!(matches!(refusal, AcknowledgeError::Unknown), "{refusal:?}");
    }
    assert_eq!(fixture.count("SELECT count(*) FROM ssh_access.site_ack").await, 0);
}

#[tokio::test]
async fn a_place_of_another_sites_feed_is_none_of_this_one() {
    let fixture = Fixture::create().await;
    let at = ["north-1", "south"];
    fixture.member("m1", 3, "alice").await;
    let registry = fixture.registry(1);
    registry.add_account(&site(at[1]), &member("m1"), &unix_user("bob")).await.unwrap();
    let [north, south] = at.map(|at| fixture.feed_of(at, Window::DEFAULT));
    let mut middles = Vec::new();
    for (feed, at) in [(&north, at[0]), (&south, at[1])] {
        fixture.propagate_at(at).await;
        let page = feed.changes(Cursor::START, 2, Duration::ZERO, pending()).await.unwrap();
        middles.push(page.next);
    }
    assert_ne!(middles[0], middles[1]);
    for (feed, middle, other) in
        [(&north, middles[0], middles[1]), (&south, middles[1], middles[0])]
    {
        let refusal = feed.acknowledge(&plain(other)).await.unwrap_err();
        assert!(matches!(refusal, AcknowledgeError::Unknown), "{refusal:?}");
        assert_eq!(feed.acknowledge(&plain(middle)).await.unwrap().cursor, middle);
    }
}

#[tokio::test]
async fn a_set_is_compared_with_what_is_in_force() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 3, "alice").await;
    fixture.member("m2", 1, "bob").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let (set, head) = snapshot(&feed).await;
    let attest = async |set: &[(String, String, String)], failures: Failures, cursor: Cursor| {
        let set_digest = Some(set_digest(set));
        let acknowledgement = Acknowledgement { set_digest, failures, ..plain(cursor) };
        feed.acknowledge(&acknowledgement).await.unwrap().attested
    };
    let none = Failures::default;
    assert_eq!(attest(&set, none(), head).await, Some(Attested::Match));
    assert_eq!(attest(&set[1..], none(), head).await, Some(Attested::Mismatch));
    let mut swapped = set.clone();
    let first = swapped[0].2.clone();
    swapped[0].2 = std::mem::replace(&mut swapped[1].2, first);
    assert_eq!(attest(&swapped, none(), head).await, Some(Attested::Mismatch));
    // What could not be applied is left out on both sides.
    let failing = |place: usize| {
        let id = KeyId::parse(&set[place].1).unwrap();
        Failures::new(vec![Failure::new(unix_user(&set[place].0), id, "a file").unwrap()]).unwrap()
    };
    assert_eq!(attest(&set[1..], failing(0), head).await, Some(Attested::Match));
    assert_eq!(attest(&set[1..], failing(1), head).await, Some(Attested::Mismatch));
    assert_eq!(attest(&set, failing(0), head).await, Some(Attested::Mismatch));
    assert_eq!(fixture.count("SELECT failing::bigint FROM ssh_access.site_ack").await, 1);
    // At another place nothing can be compared.
    fixture.member("m3", 1, "carol").await;
    fixture.propagate().await;
    assert_eq!(attest(&set, none(), head).await, Some(Attested::Behind));
    let kept = "SELECT count(*) FROM ssh_access.site_ack WHERE attested = 'mismatch'";
    assert_eq!(fixture.count(kept).await, 1, "what was last compared stays");
    assert_eq!(fixture.count("SELECT failing::bigint FROM ssh_access.site_ack").await, 0);
}

#[tokio::test]
async fn an_older_place_attests_nothing() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 1, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let (set, head) = applied(&feed).await;
    feed.acknowledge(&plain(head)).await.unwrap();
    let set_digest = Some(set_digest(&set));
    let older = Acknowledgement { set_digest, ..plain(Cursor::START) };
    let stored = feed.acknowledge(&older).await.unwrap();
    assert_eq!((stored.cursor, stored.attested), (head, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_the_furthest_stays() {
    let fixture = Fixture::create().await;
    fixture.member("m1", 31, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let mut places = vec![Cursor::START];
    for limit in 1..=31 {
        let page = feed.changes(Cursor::START, limit, Duration::ZERO, pending()).await.unwrap();
        places.push(page.next);
    }
    let stored = test_support::at_once(32, |caller| {
        let (feed, place) = (feed.clone(), places[(caller * 13) % 32]);
        async move { (place, feed.acknowledge(&plain(place)).await.unwrap().cursor) }
    })
    .await;
    assert!(stored.iter().all(|(sent, stored)| stored.seq() >= sent.seq()), "{stored:?}");
    assert_eq!(fixture.count("SELECT seq FROM ssh_access.site_ack").await, 31);
}
