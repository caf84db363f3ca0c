//! Producers against a real database that fails under them.

use std::{collections::BTreeMap, time::Duration};

use test_support::{TestDatabase, eventually};

use super::*;
use crate::qualify::commands::history::{Call, CallAnswer, History, Restore, Way, sha256};

const GENEROUS: Duration = Duration::from_secs(90);

fn load(database: &TestDatabase) -> Load {
    Load {
        stream: StreamName::new("lab-a", "k8s"),
        url: database.url("site_coordination_producer"),
        producers: 3,
        slow_producers: 2,
        longest_list: 9,
        backlog: 100_000,
        seed: 11,
    }
}

/// How many commands were acknowledged so far, and by how many transactions that stayed open.
fn acknowledged(recorder: &Recorder) -> (usize, usize) {
    let done = |call: &&Call| matches!(call.answer, CallAnswer::Acknowledged(_));
    recorder.with(|history| {
        let calls = history.calls.iter().filter(done);
        let slow = calls.clone().filter(|call| call.way == Way::OpenTransaction);
        (calls.map(|call| call.items.len()).sum(), slow.count())
    })
}

async fn reach(recorder: &Recorder, commands: usize, slow: usize) {
    eventually(GENEROUS, "acknowledged commands", async || {
        let now = acknowledged(recorder);
        (now.0 >= commands && now.1 >= slow).then_some(())
    })
    .await;
}

/// The stream as it is: place and digest of the body by key.
async fn stored(database: &TestDatabase) -> BTreeMap<String, (u64, site_protocol::Digest)> {
    let sql = "SELECT producer_key, seq, body FROM site_coordination.command
               JOIN site_coordination.command_body USING (site, environment, seq)";
    let rows = database.superuser().await.query(sql, &[]).await.unwrap();
    let row = |row: &tokio_postgres::Row| {
        let (seq, body): (i64, String) = (row.get(1), row.get(2));
        (row.get(0), (seq.unsigned_abs(), sha256(&[body.as_bytes()])))
    };
    rows.iter().map(row).collect()
}

/// Each key's last acknowledgement says where it stands, and nothing else stands there but what was
/// asked for. Returns how many keys were refused and never acknowledged.
fn prove(history: &History, stored: &BTreeMap<String, (u64, site_protocol::Digest)>) -> usize {
    let mut told = BTreeMap::new();
    let mut asked = BTreeMap::new();
    for call in &history.calls {
        asked.extend(call.items.iter().map(|item| (item.key.clone(), item.body)));
        let CallAnswer::Acknowledged(places) = &call.answer else { continue };
        assert_eq!(places.len(), call.items.len());
        for (item, place) in call.items.iter().zip(places) {
            told.insert(item.key.clone(), (place.seq, item.body));
        }
    }
    assert_eq!(&told, stored);
    asked.keys().filter(|key| !told.contains_key(*key)).count()
}

#[tokio::test]
async fn every_call_is_repeated_until_it_is_acknowledged() {
    let database = TestDatabase::create().await;
    let recorder = Recorder::begin();
    let producers = Producers::start(&load(&database), &recorder).unwrap();
    let admin = database.superuser().await;
    for round in 1..=4 {
        reach(&recorder, round * 20, round).await;
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
        admin.query(kill, &[]).await.unwrap();
    }
    reach(&recorder, 100, 5).await;
    producers.finish().await.unwrap();
    let (history, stored) = (recorder.finish(), stored(&database).await);
    prove(&history, &stored);
    for way in [Way::Enqueue, Way::EnqueueMany, Way::OpenTransaction] {
        assert!(history.calls.iter().any(|call| call.way == way), "{way:?}");
    }
    let trouble = |call: &&Call| !matches!(call.answer, CallAnswer::Acknowledged(_));
    assert_ne!(history.calls.iter().filter(trouble).count(), 0);
}

#[tokio::test]
async fn what_a_restored_database_lacks_is_sent_again() {
    let database = TestDatabase::create().await;
    let recorder = Recorder::begin();
    let producers = Producers::start(&load(&database), &recorder).unwrap();
    reach(&recorder, 20, 2).await;
    let backup_began = recorder.now();
    let backup = database.backup().await;
    let before = acknowledged(&recorder);
    for round in 1..=2 {
        reach(&recorder, before.0 + round * 30, before.1 + round).await;
        let restore_began = recorder.now();
        database.restore(&backup).await;
        let restore_ended = recorder.now();
        recorder.restore(Restore { backup_began, restore_began, restore_ended });
    }
    producers.finish().await.unwrap();
    let (history, stored) = (recorder.finish(), stored(&database).await);
    prove(&history, &stored);
}

#[tokio::test]
async fn a_full_stream_holds_producers_back() {
    let database = TestDatabase::create().await;
    let recorder = Recorder::begin();
    let load = Load { backlog: 12, ..load(&database) };
    let producers = Producers::start(&load, &recorder).unwrap();
    let refused = |call: &&Call| matches!(call.answer, CallAnswer::Refused(_));
    eventually(GENEROUS, "refusals", async || {
        let refused = recorder.with(|history| history.calls.iter().filter(refused).count());
        (refused > 4).then_some(())
    })
    .await;
    drop(producers);
    assert!(stored(&database).await.len() <= 12);
}
