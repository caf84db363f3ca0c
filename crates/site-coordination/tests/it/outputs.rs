//! Private outputs: of the command that is due, each once, and a bounded number of them.

use std::sync::Arc;

use site_coordination::{
    CommandId, Digest, NewCommand, NewResult, RuntimeSide, StoreOutputError, StoreResultError,
    Stored, StoredOutput, VoidNote, Writer,
};

use crate::support::{
    Fixture, SITE, SLURM, at_once, command, count, generation, result, session, sha256, slurm,
    store, store_as, taken_over, writer,
};

type Answer = Result<(StoredOutput, Stored), StoreOutputError>;

async fn keep(runtime: &RuntimeSide, writer: &Writer, id: &CommandId, bytes: &[u8]) -> Answer {
    runtime.store_output(SLURM, writer, id, sha256(bytes), bytes.to_vec()).await
}

async fn kept(runtime: &RuntimeSide, id: &CommandId, bytes: &[u8]) -> Answer {
    keep(runtime, &Writer::FIRST, id, bytes).await
}

const OUTPUTS: &str = "SELECT count(*) FROM site_coordination.private_output";

#[tokio::test]
async fn an_output_is_stored_before_the_result_that_names_it() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let runtime = fixture.runtime();
    let bytes = b"\0any bytes\xff";
    let with_output =
        NewResult { output: Some(sha256(bytes)), ..result(&ids[0], r#"{"outcome": "succeeded"}"#) };
    let early = runtime.store_result(SLURM, &Writer::FIRST, with_output.clone()).await;
    assert!(matches!(early, Err(StoreResultError::OutputMissing)), "{early:?}");

    let (output, now) = kept(&runtime, &ids[0], bytes).await.unwrap();
    assert_eq!(now, Stored::New);
    assert_eq!((output.digest, output.bytes), (sha256(bytes), bytes.len() as u64));
    let again = kept(&runtime, &ids[0], bytes).await.unwrap();
    assert_eq!(again, (output, Stored::Same));
    // Another try of a handler brings other bytes; the result says which count.
    let (other, _) = kept(&runtime, &ids[0], b"other").await.unwrap();
    assert_ne!(other.digest, output.digest);
    runtime.store_result(SLURM, &Writer::FIRST, with_output).await.unwrap();

    let sql = fixture.sql().await;
    let counted = "SELECT count(*) FROM site_coordination.private_output o
        JOIN site_coordination.command_result r ON r.output_digest = o.digest AND r.seq = o.seq
       WHERE o.bytes = '\\x00616e79206279746573ff'";
    assert_eq!(count(&sql, counted).await, 1);
    assert_eq!(count(&sql, OUTPUTS).await, 2);
}

#[tokio::test]
async fn an_output_of_sixteen_mib_and_an_empty_one_are_stored() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let runtime = fixture.runtime();
    let large = vec![0xa5; 16 * 1024 * 1024];
    for bytes in [&large[..], b""] {
        let (output, _) = kept(&runtime, &ids[0], bytes).await.unwrap();
        assert_eq!(output.bytes, bytes.len() as u64);
    }
    let right = "SELECT count(*) FROM site_coordination.private_output
                  WHERE digest = sha256(bytes) AND octet_length(bytes) IN (0, 16777216)";
    assert_eq!(count(&fixture.sql().await, right).await, 2);
}

#[tokio::test]
async fn bytes_of_another_digest_are_refused() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let runtime = fixture.runtime();
    for wrong in [Digest::ZERO, sha256(b"other")] {
        let refusal =
            runtime.store_output(SLURM, &Writer::FIRST, &ids[0], wrong, b"bytes".to_vec()).await;
        assert!(matches!(refusal, Err(StoreOutputError::DigestMismatch)), "{refusal:?}");
    }
    assert_eq!(count(&fixture.sql().await, OUTPUTS).await, 0);
}

#[tokio::test]
async fn the_verdicts_come_in_their_order() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(4).await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    let stranger = CommandId::derive(&slurm(), &command("never").key);
    let refusal = kept(&runtime, &stranger, b"x").await.unwrap_err();
    assert!(matches!(refusal, StoreOutputError::UnknownCommand), "{refusal:?}");
    let alone = producer.enqueue(&slurm(), NewCommand { run_id: None, ..command("alone") }).await;
    let refusal = kept(&runtime, &alone.unwrap().id, b"x").await.unwrap_err();
    assert!(matches!(refusal, StoreOutputError::NoRun), "{refusal:?}");

    for early in &ids[1..] {
        let refusal = kept(&runtime, early, b"x").await.unwrap_err();
        assert!(
            matches!(refusal, StoreOutputError::PredecessorMissing { done_seq } if done_seq.get() == 0),
            "{refusal:?}"
        );
    }
    let (output, _) = kept(&runtime, &ids[0], b"x").await.unwrap();
    let (receipt, _) = store(&runtime, &ids[0], "1").await.unwrap();
    let note = VoidNote::parse("stuck").unwrap();
    let voided = producer.void(&slurm(), &ids[1], &note).await.unwrap();
    taken_over(&runtime, 2).await;

    // What is stored is found whoever asks; the ending comes before the writer, the writer before
    // the place.
    for asks in [Writer::FIRST, writer(2), writer(3)] {
        assert_eq!(keep(&runtime, &asks, &ids[0], b"x").await.unwrap(), (output, Stored::Same));
        let refusal = keep(&runtime, &asks, &ids[0], b"late").await.unwrap_err();
        assert!(
            matches!(refusal, StoreOutputError::Conflict { stored } if stored == receipt.digest),
            "{refusal:?}"
        );
        let refusal = keep(&runtime, &asks, &ids[1], b"late").await.unwrap_err();
        assert!(
            matches!(refusal, StoreOutputError::AlreadyVoided { at } if at == voided.at),
            "{refusal:?}"
        );
    }
    for id in &ids[2..] {
        let refusal = kept(&runtime, id, b"x").await.unwrap_err();
        assert!(
            matches!(refusal, StoreOutputError::StaleGeneration { current } if current == generation(2)),
            "{refusal:?}"
        );
        let refusal = keep(&runtime, &writer(3), id, b"x").await.unwrap_err();
        assert!(
            matches!(refusal, StoreOutputError::HistoryDiverged { current } if current == generation(2)),
            "{refusal:?}"
        );
    }
    keep(&runtime, &writer(2), &ids[2], b"x").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_different_outputs_at_once_as_many_as_allowed_are_stored() {
    const ROUNDS: usize = 10;
    let fixture = Fixture::create().await;
    let ids = fixture.filled(ROUNDS).await;
    let runtime = Arc::new(fixture.runtime_of(SITE, 32));
    let most = usize::from(RuntimeSide::MOST_OUTPUTS);
    for id in &ids {
        let answers = at_once(32, |caller| {
            let (runtime, id) = (Arc::clone(&runtime), id.clone());
            async move { kept(&runtime, &id, format!("output {caller}").as_bytes()).await }
        })
        .await;
        let stored = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(stored, most);
        for refusal in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            assert!(matches!(refusal, StoreOutputError::TooMany { limit: 8 }), "{refusal:?}");
        }
        // What is there is found, also where there is room for no other.
        for (caller, answer) in answers.iter().enumerate() {
            if let Ok((output, _)) = answer {
                let again =
                    kept(&runtime, id, format!("output {caller}").as_bytes()).await.unwrap();
                assert_eq!(again, (*output, Stored::Same));
            }
        }
        store(&runtime, id, "1").await.unwrap();
    }
    assert_eq!(count(&fixture.sql().await, OUTPUTS).await, (ROUNDS * most) as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_output_from_everybody_is_stored_once() {
    const ROUNDS: usize = 10;
    let fixture = Fixture::create().await;
    let ids = fixture.filled(ROUNDS).await;
    let runtime = Arc::new(fixture.runtime_of(SITE, 32));
    for id in &ids {
        let answers = at_once(32, |_| {
            let (runtime, id) = (Arc::clone(&runtime), id.clone());
            async move { kept(&runtime, &id, b"one").await.unwrap() }
        })
        .await;
        assert!(answers.iter().all(|(output, _)| *output == answers[0].0));
        assert_eq!(answers.iter().filter(|(_, now)| *now == Stored::New).count(), 1);
        store(&runtime, id, "1").await.unwrap();
    }
    assert_eq!(count(&fixture.sql().await, OUTPUTS).await, ROUNDS as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_output_comes_after_the_result_or_after_the_stream_was_taken_over() {
    const ROUNDS: i64 = 40;
    let fixture = Fixture::create().await;
    let ids = fixture.filled(ROUNDS as usize).await;
    let runtime = Arc::new(fixture.runtime_of(SITE, 16));
    let sql = fixture.sql().await;
    let (mut late, mut current) = (0, Writer::FIRST);
    for (round, id) in (1..).zip(&ids) {
        let answers = at_once(8, |caller| {
            let (runtime, id, current) = (Arc::clone(&runtime), id.clone(), current.clone());
            async move {
                if caller == 3 {
                    if round % 2 == 0 {
                        store_as(&runtime, &current, &id, "1").await.unwrap();
                        return None;
                    }
                    let expected = current.generation();
                    let number = expected.get() + 1;
                    let opened = runtime.open_session(SLURM, session(number), expected).await;
                    return Some(Ok(opened.map(|(opened, _)| opened).unwrap()));
                }
                let bytes = format!("{round} {caller}");
                Some(Err(keep(&runtime, &current, &id, bytes.as_bytes()).await))
            }
        })
        .await;
        let mut stored = 0;
        for answer in answers.into_iter().flatten() {
            match answer {
                Ok(opened) => current = opened.writer(),
                Err(Ok(_)) => stored += 1,
                Err(Err(
                    StoreOutputError::Conflict { .. } | StoreOutputError::StaleGeneration { .. },
                )) => late += 1,
                Err(Err(error)) => panic!("a false answer: {error:?}"),
            }
        }
        let query = format!("{OUTPUTS} WHERE seq = {round}");
        assert_eq!(count(&sql, &query).await, stored, "a refused output was stored");
        if round % 2 == 1 {
            store_as(&runtime, &current, id, "1").await.unwrap();
        }
    }
    assert!(late > 0, "no output met an ending");
    let after = "SELECT count(*) FROM site_coordination.private_output o
        JOIN site_coordination.command_result r USING (site, environment, seq)
       WHERE o.created_at > r.received_at";
    assert_eq!(count(&sql, after).await, 0, "an output came after the result");
}
