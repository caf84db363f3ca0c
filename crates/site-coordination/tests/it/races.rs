//! Many callers at the same moment: no gap, nothing twice, everybody gets the true answer.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use site_coordination::{
    CommandId, Digest, Environment, Producer, Receipt, RuntimeSide, StoreResultError, Stored,
    Stream,
};

use crate::support::{
    Fixture, SITE, after, at_once, command, commands_named, count, json, poll, prove_stream,
    sha256, slurm, store, stream,
};

const PRODUCERS: usize = 24;

#[tokio::test(flavor = "multi_thread")]
async fn producers_that_repeat_each_others_keys_leave_no_gap_and_no_key_twice() {
    const ROUNDS: usize = 12;
    let fixture = Fixture::create().await;
    let streams = [slurm(), stream(SITE, Environment::K8s)];
    let producer = fixture.producer(PRODUCERS);
    let done = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read_all_the_time(fixture.runtime(), Arc::clone(&done)));

    let answers = at_once(PRODUCERS, |caller| {
        let (producer, streams) = (producer.clone(), streams.clone());
        async move {
            let mut answers = Vec::new();
            for round in 0..ROUNDS {
                let stream = &streams[(caller + round) % 2];
                answers
                    .push((stream.clone(), enqueue_some(&producer, stream, caller, round).await));
            }
            answers
        }
    })
    .await;
    done.store(true, Ordering::Relaxed);
    let pages = reader.await.unwrap();
    assert!(pages > 10, "the reader read {pages} pages only");

    let sql = fixture.sql().await;
    for stream in &streams {
        let keys = prove_stream(&sql, stream).await;
        let given: Vec<_> = answers.iter().flatten().filter(|(s, _)| s == stream).collect();
        let news = given.iter().flat_map(|(_, list)| list).filter(|(.., new)| *new).count();
        assert_eq!(news, keys.len(), "each command is new to one caller");
        for (key, seq, _) in given.iter().flat_map(|(_, list)| list) {
            assert_eq!(&keys[*seq as usize - 1], key, "a caller got another command's place");
        }
    }
}

/// One call of a producer: every third a single command, else a list; a third of the keys are its
/// own, the others are those of its neighbours in the same round.
async fn enqueue_some(
    producer: &Producer,
    stream: &Stream,
    caller: usize,
    round: usize,
) -> Vec<(String, u64, bool)> {
    let shared = |n: usize| format!("shared-{round}-{}", (caller / 4 + n) % 8);
    let keys = match (caller + round) % 3 {
        0 => vec![shared(0)],
        1 => vec![shared(2), format!("own-{caller}-{round}"), shared(1), shared(0), shared(2)],
        _ => (0..6).map(shared).chain([format!("own-{caller}-{round}")]).collect(),
    };
    let places = if let [key] = &keys[..] {
        vec![producer.enqueue(stream, command(key)).await.unwrap()]
    } else {
        let list = keys.iter().map(|key| command(key)).collect();
        producer.enqueue_many(stream, list).await.unwrap()
    };
    assert_eq!(places.len(), keys.len());
    // Within a list the first of equal keys may be new; the others are that same one.
    let mut seen = HashSet::new();
    keys.into_iter()
        .zip(places)
        .map(|(key, place)| {
            let first = seen.insert(key.clone());
            (key, place.seq.to_u64(), place.new && first)
        })
        .collect()
}

/// Reads from the beginning and goes on, again and again; each page continues the one before, in
/// sequence and in chain. Returns the number of pages.
async fn read_all_the_time(runtime: RuntimeSide, done: Arc<AtomicBool>) -> usize {
    let (mut cursor, mut digest, mut pages) = (0, Digest::ZERO, 0);
    while !done.load(Ordering::Relaxed) {
        let request = site_coordination::PollRequest {
            after_digest: Some(digest),
            limit: 7,
            ..after(cursor)
        };
        let page = poll(&runtime, request).await.unwrap();
        for command in &page.commands {
            cursor += 1;
            assert_eq!(command.seq.get(), cursor, "the reader saw a gap");
            digest = sha256(&[*digest.as_bytes(), *command.digest.as_bytes()].concat());
            assert_eq!(command.chain_digest, digest, "the reader saw a fork");
        }
        assert!(page.last_seq.get() >= cursor);
        pages += 1;
        if page.commands.is_empty() && pages % 16 == 0 {
            (cursor, digest) = (0, Digest::ZERO);
        }
    }
    pages
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_producer_that_gives_up_holds_the_others_and_leaves_no_gap() {
    let fixture = Fixture::create().await;
    fixture.filled(2).await;
    let runtime = fixture.runtime();
    for outcome in ["ROLLBACK", "COMMIT"] {
        let slow = fixture.sql().await;
        slow.batch_execute(
            "BEGIN; UPDATE site_coordination.stream_head SET last_seq = last_seq + 1,
                    last_digest = sha256(last_digest || decode(repeat('ab', 32), 'hex'))",
        )
        .await
        .unwrap();
        let producer = fixture.producer(2);
        let one = tokio::spawn({
            let (producer, key) = (producer.clone(), format!("one-{outcome}"));
            async move { producer.enqueue(&slurm(), command(&key)).await.unwrap() }
        });
        let many = tokio::spawn({
            let commands = commands_named(&format!("many-{outcome}-"), 3);
            async move { producer.enqueue_many(&slurm(), commands).await.unwrap() }
        });
        let sql = fixture.sql().await;
        waiting_for_a_lock(&sql, 2).await;
        // What is not committed is not seen, neither the slow one's place nor those behind it.
        let before = poll(&runtime, after(0)).await.unwrap();
        assert_eq!(before.last_seq.get(), before.commands.len() as i64);
        if outcome == "COMMIT" {
            slow.batch_execute(
                "INSERT INTO site_coordination.command (site, environment, seq, command_id,
                        producer_key, kind, digest, chain_digest)
                 SELECT site, environment, last_seq, 'cmd_' || repeat('0', 32), 'slow', 'x',
                        decode(repeat('ab', 32), 'hex'), last_digest
                   FROM site_coordination.stream_head;
                 INSERT INTO site_coordination.command_body
                 SELECT site, environment, last_seq, '1' FROM site_coordination.stream_head",
            )
            .await
            .unwrap();
        }
        slow.batch_execute(outcome).await.unwrap();
        let slow_one = i64::from(outcome == "COMMIT");
        let mut places = vec![one.await.unwrap().seq.get()];
        places.extend(many.await.unwrap().iter().map(|command| command.seq.get()));
        places.sort_unstable();
        let first = before.last_seq.get() + slow_one + 1;
        assert_eq!(places, (first..first + 4).collect::<Vec<_>>(), "after {outcome}");
        if outcome == "ROLLBACK" {
            prove_stream(&sql, &slurm()).await;
        }
    }
}

/// Waits until `callers` sessions of this database wait for a lock.
async fn waiting_for_a_lock(sql: &tokio_postgres::Client, callers: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND wait_event_type = 'Lock'";
    test_support::eventually(crate::support::LONG, "the callers to wait for a lock", async || {
        (count(sql, waiting).await == callers).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_same_result_from_everybody_one_is_new_and_the_receipts_are_one() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(20).await;
    let runtime = Arc::new(fixture.runtime_of(SITE, 32));
    for id in &ids {
        let answers = results(&runtime, id, |_| "{\"done\":true}".to_owned()).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers.iter().filter(|(_, now)| *now == Stored::New).count(), 1);
        let receipts: Vec<&Receipt> = answers.iter().map(|(receipt, _)| receipt).collect();
        assert!(receipts.iter().all(|receipt| *receipt == receipts[0]), "{receipts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_different_results_from_everybody_one_wins_and_the_others_get_its_digest() {
    let fixture = Fixture::create().await;
    // Enough commands in a row that every way of losing a race comes up.
    let ids = fixture.filled(200).await;
    let runtime = Arc::new(fixture.runtime_of(SITE, 24));
    for id in &ids {
        let answers = results(&runtime, id, |caller| format!("{{\"caller\":{caller}}}")).await;
        let winners: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(winners[0].1, Stored::New);
        for refusal in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            assert!(
                matches!(refusal, StoreResultError::Conflict { stored } if *stored == winners[0].0.digest),
                "a false answer: {refusal:?}"
            );
        }
    }
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT count(*) FROM site_coordination.command_result").await, 200);
    assert_eq!(count(&sql, "SELECT done_seq FROM site_coordination.stream_progress").await, 200);
}

type Answer = Result<(Receipt, Stored), StoreResultError>;

/// 32 callers at once store a result for one command.
async fn results(
    runtime: &Arc<RuntimeSide>,
    id: &CommandId,
    body: impl Fn(usize) -> String,
) -> Vec<Answer> {
    at_once(32, |caller| {
        let (runtime, id, body) = (Arc::clone(runtime), id.clone(), body(caller));
        async move { store(&runtime, &id, &body).await }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_beside_its_predecessors_is_stored_or_truly_too_early() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(150).await;
    let runtime = Arc::new(fixture.runtime_of(SITE, 8));
    for pair in ids.chunks(2) {
        let answers = at_once(8, |caller| {
            let (runtime, id) = (Arc::clone(&runtime), pair[caller % 2].clone());
            async move { store(&runtime, &id, "1").await }
        })
        .await;
        for (caller, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok((receipt, _)) => {
                    assert_eq!(receipt.digest, json("1").digest());
                }
                // True only for the second of the two, and only while the first is not stored.
                Err(StoreResultError::PredecessorMissing { done_seq }) if caller % 2 == 1 => {
                    let first = ids.iter().position(|id| *id == pair[0]).unwrap();
                    assert_eq!(done_seq.to_u64(), first as u64);
                }
                Err(error) => panic!("a false answer to caller {caller}: {error:?}"),
            }
        }
        store(&runtime, &pair[1], "1").await.unwrap();
    }
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT done_seq FROM site_coordination.stream_progress").await, 150);
}
