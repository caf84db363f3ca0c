//! The outbox: events without a gap in the order of commits, and what is published of them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use site_coordination::{CancelError, Environment, Event, Outbox, SiteId, VoidNote};

use crate::support::{Fixture, SITE, at_once, commands_named, slurm, stream};

impl Fixture {
    fn outbox(&self, site: &str) -> Outbox {
        Outbox::new(self.api_pool(1), SiteId::parse(site).unwrap())
    }
}

/// Reads on until `stopped` and once more.
async fn read_on(outbox: Outbox, stopped: Arc<AtomicBool>) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let last = stopped.load(Ordering::Relaxed);
        loop {
            let next = outbox.next(events.len() as u64, 7).await.unwrap();
            if next.is_empty() {
                break;
            }
            for event in next {
                assert_eq!(event.seq, events.len() as u64 + 1, "a reader saw a gap");
                assert!(
                    events.last().is_none_or(|before| before.occurred_at <= event.occurred_at),
                    "an event is older than the one before"
                );
                events.push(event);
            }
        }
        if last {
            return events;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_changes_from_everywhere_never_sees_a_gap() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(32);
    let streams = [slurm(), stream(SITE, Environment::K8s), stream("north-2", Environment::Slurm)];
    let mut ids = Vec::new();
    for stream in &streams {
        let enqueued = producer.enqueue_many(stream, commands_named("k", 96)).await.unwrap();
        ids.push(enqueued.into_iter().map(|command| command.id).collect::<Vec<_>>());
    }
    let ids = Arc::new(ids);
    let stopped = Arc::new(AtomicBool::new(false));
    let readers = [SITE, "north-2"]
        .map(|site| tokio::spawn(read_on(fixture.outbox(site), Arc::clone(&stopped))));

    at_once(32, |caller| {
        let (producer, ids, streams) = (producer.clone(), Arc::clone(&ids), streams.clone());
        async move {
            let note = VoidNote::parse("x").unwrap();
            for (stream, ids) in streams.iter().zip(ids.iter()) {
                for round in 0..3 {
                    let own = caller * 3 + round;
                    // The first three may be voided by now: everybody voids those.
                    match producer.cancel(stream, &ids[own]).await {
                        Ok(_) => {}
                        Err(CancelError::AlreadyEnded) if own < 3 => {}
                        Err(error) => panic!("{error:?}"),
                    }
                    producer.void(stream, &ids[round], &note).await.unwrap();
                }
            }
        }
    })
    .await;
    stopped.store(true, Ordering::Relaxed);
    let [here, there] = readers;
    let (here, there) = (here.await.unwrap(), there.await.unwrap());
    let of = |events: &[Event], kind: &str| events.iter().filter(|e| e.kind == kind).count();
    // A command that was voided before its turn to be cancelled has no mark.
    assert_eq!(of(&there, "commands.command.voided"), 3);
    assert_eq!(of(&here, "commands.command.voided"), 6);
    assert!(of(&there, "commands.command.cancelled") >= 93, "{}", there.len());
    assert!(of(&here, "commands.command.cancelled") >= 186, "{}", here.len());
    let mut ids: Vec<_> = here.iter().chain(&there).map(|event| &event.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), here.len() + there.len(), "an event's id stands twice");
}

#[tokio::test]
async fn the_position_moves_forward_only() {
    let fixture = Fixture::create().await;
    let outbox = fixture.outbox(SITE);
    assert_eq!(outbox.position().await.unwrap(), 0);
    assert!(outbox.next(0, 9).await.unwrap().is_empty());
    let ids = fixture.filled(4).await;
    let producer = fixture.producer(1);
    for id in &ids {
        producer.cancel(&slurm(), id).await.unwrap();
    }
    assert_eq!(outbox.position().await.unwrap(), 0);
    let events = outbox.next(1, 2).await.unwrap();
    let places: Vec<_> = events.iter().map(|event| (event.seq, event.subject.as_str())).collect();
    assert_eq!(places, [(2, ids[1].as_str()), (3, ids[2].as_str())]);
    assert_eq!(events[0].environment, Environment::Slurm);
    assert_eq!(outbox.next(1, 2).await.unwrap(), events, "reading takes nothing");

    for (published, position) in [(2, 2), (1, 2), (4, 4), (4, 4), (0, 4)] {
        outbox.published(published).await.unwrap();
        assert_eq!(outbox.position().await.unwrap(), position, "after {published}");
    }
    // Another Site's is its own.
    assert_eq!(fixture.outbox("north-2").position().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_relays_at_once_the_farthest_counts() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    fixture.producer(1).cancel(&slurm(), &ids[0]).await.unwrap();
    let outbox = Outbox::new(fixture.api_pool(32), SiteId::parse(SITE).unwrap());
    for round in 0..8 {
        at_once(32, |caller| {
            let outbox = outbox.clone();
            async move {
                outbox.published(round * 32 + (caller as u64 * 7) % 32).await.unwrap();
                assert!(outbox.position().await.unwrap() >= (caller as u64 * 7) % 32);
            }
        })
        .await;
        assert_eq!(outbox.position().await.unwrap(), round * 32 + 31);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn relays_that_ask_for_the_first_time_at_once_all_begin_before_what_is_left() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let producer = fixture.producer(1);
    for id in &ids {
        producer.cancel(&slurm(), id).await.unwrap();
    }
    let sql = fixture.sql().await;
    sql.batch_execute("DELETE FROM site_coordination.event WHERE seq < 3").await.unwrap();
    let outbox = Outbox::new(fixture.api_pool(32), SiteId::parse(SITE).unwrap());
    for _ in 0..8 {
        sql.batch_execute("DELETE FROM site_coordination.event_relay").await.unwrap();
        let positions = at_once(32, |_| {
            let outbox = outbox.clone();
            async move { outbox.position().await.unwrap() }
        })
        .await;
        assert_eq!(positions, [2; 32]);
    }
}
