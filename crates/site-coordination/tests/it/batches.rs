//! Many results at once: each gets the verdict that it would have had alone, in their order.

use std::sync::Arc;

use site_coordination::{
    CommandId, NewResult, OpenSessionError, OpenedSession, Receipt, RuntimeSide, SessionId,
    StoreResultError, Stored, VoidNote, Writer,
};

use crate::support::{
    Fixture, SITE, SLURM, at_once, batch, command, count, generation, json, prove_endings, result,
    slurm, store, taken_over, writer,
};

/// What became of each result, in short.
fn told(verdicts: &[Result<(Receipt, Stored), StoreResultError>]) -> Vec<String> {
    verdicts
        .iter()
        .map(|verdict| match verdict {
            Ok((receipt, Stored::New)) => format!("new {}", receipt.seq.get()),
            Ok((receipt, Stored::Same)) => format!("same {}", receipt.seq.get()),
            Err(StoreResultError::Conflict { .. }) => "conflict".to_owned(),
            Err(StoreResultError::AlreadyVoided { .. }) => "voided".to_owned(),
            Err(StoreResultError::HistoryDiverged { .. }) => "diverged".to_owned(),
            Err(StoreResultError::StaleGeneration { .. }) => "stale".to_owned(),
            Err(StoreResultError::PredecessorMissing { done_seq }) => {
                format!("after {}", done_seq.get())
            }
            Err(StoreResultError::OutputMissing) => "output".to_owned(),
            Err(StoreResultError::UnknownCommand) => "unknown".to_owned(),
            Err(error) => panic!("{error:?}"),
        })
        .collect()
}

/// The results of some commands of a filled stream, by their places.
fn of(ids: &[CommandId], places: &[usize]) -> Vec<NewResult> {
    places.iter().map(|place| result(&ids[place - 1], &place.to_string())).collect()
}

async fn stored(runtime: &RuntimeSide, results: Vec<NewResult>) -> Vec<String> {
    told(&batch(runtime, &Writer::FIRST, results).await)
}

#[tokio::test]
async fn consecutive_results_are_stored_in_one_call() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(70).await;
    let runtime = fixture.runtime();
    let places: Vec<usize> = (1..=64).collect();
    let verdicts = batch(&runtime, &Writer::FIRST, of(&ids, &places)).await;
    for (place, verdict) in (1..).zip(verdicts) {
        let (receipt, now) = verdict.unwrap();
        assert_eq!((receipt.seq.get(), now), (place, Stored::New));
        assert_eq!(receipt.digest, json(&place.to_string()).digest());
    }
    let sql = fixture.sql().await;
    assert_eq!(prove_endings(&sql).await, 64);
    // All of them again, and the rest.
    let all: Vec<usize> = (1..=70).collect();
    let verdicts = stored(&runtime, of(&ids, &all)).await;
    assert_eq!(verdicts[63], "same 64");
    assert_eq!(verdicts[64], "new 65");
    assert_eq!(prove_endings(&sql).await, 70);
}

#[tokio::test]
async fn each_result_gets_the_verdict_that_it_would_have_had_alone() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(9).await;
    let runtime = fixture.runtime();
    store(&runtime, &ids[0], "1").await.unwrap();
    store(&runtime, &ids[1], "\"other\"").await.unwrap();
    let stranger = CommandId::derive(&slurm(), &command("never").key);

    let mut results = of(&ids, &[1, 2, 4, 3, 5]);
    results.insert(3, result(&stranger, "1"));
    assert_eq!(
        stored(&runtime, results).await,
        ["same 1", "conflict", "after 2", "unknown", "new 3", "after 3"]
    );
    // In the order of the list, not of the stream.
    assert_eq!(stored(&runtime, of(&ids, &[6, 5, 4])).await, ["after 3", "after 3", "new 4"]);
    assert_eq!(
        stored(&runtime, of(&ids, &[6, 5, 6, 7])).await,
        ["after 4", "new 5", "after 4", "after 5"]
    );
    assert_eq!(prove_endings(&fixture.sql().await).await, 5);
}

#[tokio::test]
async fn a_command_that_stands_in_the_list_twice_has_its_first_result() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let runtime = fixture.runtime();
    let results = vec![
        result(&ids[0], "1"),
        result(&ids[0], "1"),
        result(&ids[0], "2"),
        result(&ids[1], "1"),
    ];
    assert_eq!(stored(&runtime, results).await, ["new 1", "same 1", "conflict", "new 2"]);
    assert!(stored(&runtime, Vec::new()).await.is_empty());
}

#[tokio::test]
async fn a_voided_command_takes_no_result_and_holds_no_other_up() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(4).await;
    let runtime = fixture.runtime();
    store(&runtime, &ids[0], "1").await.unwrap();
    let note = VoidNote::parse("stuck").unwrap();
    let voided = fixture.producer(1).void(&slurm(), &ids[1], &note).await.unwrap();
    let verdicts = batch(&runtime, &Writer::FIRST, of(&ids, &[1, 2, 3])).await;
    assert!(
        matches!(verdicts[1], Err(StoreResultError::AlreadyVoided { at }) if at == voided.at),
        "{verdicts:?}"
    );
    assert_eq!(told(&verdicts), ["same 1", "voided", "new 3"]);
    // The void is told before anything about the writer.
    assert_eq!(told(&batch(&runtime, &writer(9), of(&ids, &[2, 4])).await), ["voided", "diverged"]);
    assert_eq!(prove_endings(&fixture.sql().await).await, 3);
}

#[tokio::test]
async fn a_result_that_names_an_output_needs_it() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(4).await;
    let runtime = fixture.runtime();
    let output = json("1").digest();
    let mut results = of(&ids, &[1, 2, 3]);
    results[1].output = Some(output);
    assert_eq!(stored(&runtime, results).await, ["new 1", "output", "after 1"]);
    // An earlier verdict comes first.
    let mut results = of(&ids, &[1, 3]);
    results[0].output = Some(output);
    results[1].output = Some(output);
    assert_eq!(stored(&runtime, results.clone()).await, ["same 1", "after 1"]);
    let sql = fixture.sql().await;
    sql.batch_execute(
        "INSERT INTO site_coordination.private_output (site, environment, seq, digest, slot, bytes)
         VALUES ('north-1', 'slurm', 2, sha256('1'), 1, '1'), ('north-1', 'slurm', 3, sha256('2'), 1, '2')",
    )
    .await
    .unwrap();
    let mut results = of(&ids, &[2, 3]);
    results[0].output = Some(output);
    results[1].output = Some(output);
    assert_eq!(stored(&runtime, results).await, ["new 2", "output"]);
    let named = "SELECT count(*) FROM site_coordination.command_result
                  WHERE output_digest = sha256('1') AND seq = 2";
    assert_eq!(count(&sql, named).await, 1);
}

#[tokio::test]
async fn a_writer_that_was_taken_over_gets_its_receipts_and_stores_nothing() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let runtime = fixture.runtime();
    store(&runtime, &ids[0], "1").await.unwrap();
    taken_over(&runtime, 2).await;
    assert_eq!(stored(&runtime, of(&ids, &[1, 2, 3])).await, ["same 1", "stale", "stale"]);
    let ahead = batch(&runtime, &writer(3), of(&ids, &[1, 2])).await;
    assert_eq!(told(&ahead), ["same 1", "diverged"]);
    let now = batch(&runtime, &writer(2), of(&ids, &[1, 2, 3])).await;
    assert_eq!(told(&now), ["same 1", "new 2", "new 3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn overlapping_batches_from_everybody_store_each_result_once() {
    const COMMANDS: usize = 400;
    let fixture = Fixture::create().await;
    let ids = Arc::new(fixture.filled(COMMANDS).await);
    let runtime = Arc::new(fixture.runtime_of(SITE, 24));
    let mut news = vec![0; COMMANDS + 1];
    let mut done = 0;
    while done < COMMANDS {
        let answers = at_once(32, |caller| {
            let (runtime, ids) = (Arc::clone(&runtime), Arc::clone(&ids));
            // From a little before the progress to a little behind it, of every length.
            let first = (done + 1 + caller % 5).saturating_sub(2).max(1);
            let last = (first + caller % 11).min(COMMANDS);
            async move {
                let places: Vec<usize> = (first..=last).collect();
                (places.clone(), batch(&runtime, &Writer::FIRST, of(&ids, &places)).await)
            }
        })
        .await;
        let mut reached = done;
        for (places, verdicts) in &answers {
            for (place, verdict) in places.iter().zip(verdicts) {
                match verdict {
                    Ok((receipt, now)) => {
                        assert_eq!(receipt.seq.get(), *place as i64);
                        assert_eq!(receipt.digest, json(&place.to_string()).digest());
                        news[*place] += i32::from(*now == Stored::New);
                        reached = reached.max(*place);
                    }
                    // True only where the list did not begin with the command that was due then.
                    Err(StoreResultError::PredecessorMissing { done_seq }) => {
                        assert!(done_seq.to_u64() as usize >= done, "an old truth");
                        assert!(done_seq.get() + 1 < *place as i64, "it was due");
                        assert!(done_seq.get() + 1 < places[0] as i64, "its own list had it");
                    }
                    Err(error) => panic!("a false answer: {error:?}"),
                }
            }
        }
        assert!(reached > done, "nothing was stored");
        done = reached;
    }
    assert!(news[1..].iter().all(|count| *count == 1), "{news:?}");
    assert_eq!(prove_endings(&fixture.sql().await).await, COMMANDS as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_result_of_an_old_generation_comes_after_the_new_one_is_open() {
    const ROUNDS: i64 = 40;
    let fixture = Fixture::create().await;
    let ids = Arc::new(fixture.filled(ROUNDS as usize * 64).await);
    let runtime = Arc::new(fixture.runtime_of(SITE, 16));
    let sql = fixture.sql().await;
    let (mut current, mut beside) = (Writer::FIRST, 0);
    for round in 1..=ROUNDS {
        let done =
            count(&sql, "SELECT coalesce(max(done_seq), 0) FROM site_coordination.stream_progress")
                .await;
        let answers = at_once(16, |caller| {
            let (runtime, ids, current) = (Arc::clone(&runtime), Arc::clone(&ids), current.clone());
            async move {
                if caller % 8 == 7 {
                    // Two Runtimes want the stream; the loser is told so.
                    let id = format!("session-{round}-of-caller-{caller}");
                    let id = SessionId::parse(&id).unwrap();
                    let expected = generation(round);
                    let opened = runtime.open_session(SLURM, id, expected).await;
                    return Answer::Opened(opened.map(|(opened, _)| opened));
                }
                let first = done as usize + 1 + caller % 3;
                let places: Vec<usize> = (first..first + 4).collect();
                Answer::Stored(batch(&runtime, &current, of(&ids, &places)).await)
            }
        })
        .await;
        let opened: Vec<_> = answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Opened(Ok(opened)) => Some(opened),
                _ => None,
            })
            .collect();
        assert_eq!(opened.len(), 1);
        for answer in &answers {
            let Answer::Stored(verdicts) = answer else { continue };
            for verdict in verdicts {
                match verdict {
                    // What was stored lies before the place at which the new generation began, or
                    // it was read while that place moved: the table has the proof.
                    Ok(_) | Err(StoreResultError::PredecessorMissing { .. }) => {}
                    Err(StoreResultError::StaleGeneration { current }) => {
                        assert_eq!(*current, opened[0].generation);
                        beside += 1;
                    }
                    Err(error) => panic!("a false answer: {error:?}"),
                }
            }
        }
        // From here on nothing of the old generation.
        let mark = count(&sql, "SELECT done_seq FROM site_coordination.stream_progress").await;
        assert_eq!(opened[0].done_seq.get(), mark, "a result came after the session was open");
        current = opened[0].writer();
    }
    assert!(beside > 0, "no result met a session");
    let order = "SELECT count(*) FROM (
        SELECT generation, lag(generation) OVER (ORDER BY seq) AS before
          FROM site_coordination.command_result) r WHERE generation < before";
    assert_eq!(count(&sql, order).await, 0, "an older generation wrote after a newer one");
    prove_endings(&sql).await;
}

enum Answer {
    Opened(Result<OpenedSession, OpenSessionError>),
    Stored(Vec<Result<(Receipt, Stored), StoreResultError>>),
}
