//! Cancelled and voided commands: one mark a command, one ending a command, one event each.

use std::{collections::BTreeSet, sync::Arc};

use site_coordination::{
    CancelError, CommandId, Environment, Producer, StoreResultError, VoidError, VoidNote,
    VoidReason,
};
use tokio_postgres::Client;

use crate::support::{
    Fixture, SITE, after, at_once, command, count, poll, seq, slurm, store, stream,
};

fn note(text: &str) -> VoidNote {
    VoidNote::parse(text).unwrap()
}

async fn void(producer: &Producer, id: &CommandId) -> Result<VoidReason, VoidError> {
    producer.void(&slurm(), id, &note("stuck")).await.map(|voided| voided.reason)
}

/// Sequence, type, subject and data of each event of the Site.
async fn events(sql: &Client) -> Vec<(i64, String, String, serde_json::Value)> {
    let query = "SELECT seq, type, subject, data FROM site_coordination.event
                  WHERE site = 'north-1' ORDER BY seq";
    let rows = sql.query(query, &[]).await.unwrap();
    let data = |text: String| serde_json::from_str(&text).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), data(row.get(3)))).collect()
}

#[tokio::test]
async fn a_cancelled_command_has_one_mark_and_its_event_for_ever() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    let second = producer.cancel(&slurm(), &ids[1]).await.unwrap();
    let first = producer.cancel(&slurm(), &ids[0]).await.unwrap();
    assert!(second.new && first.new);
    assert_eq!((second.cancel_rev, first.cancel_rev), (1, 2));
    let again = producer.cancel(&slurm(), &ids[1]).await.unwrap();
    assert_eq!(again, site_coordination::Cancelled { new: false, ..second });

    let shown = producer.show(&slurm(), &ids[1]).await.unwrap().unwrap();
    assert_eq!(shown.cancelled_at, Some(second.at));
    let listed = producer.list(&slurm(), seq(0), 9).await.unwrap();
    let marks: Vec<_> = listed.iter().map(|command| command.cancelled_at).collect();
    assert_eq!(marks, [Some(first.at), Some(second.at), None]);

    // It has an ending like every other; the mark is still the answer then.
    store(&runtime, &ids[0], "1").await.unwrap();
    assert_eq!(producer.cancel(&slurm(), &ids[0]).await.unwrap().cancel_rev, 2);

    let data = |seq, id: &CommandId, rev| {
        serde_json::json!({"site": SITE, "environment": "slurm", "seq": seq,
                           "commandId": id.as_str(), "cancelRev": rev})
    };
    let kind = "commands.command.cancelled".to_owned();
    let expected = [
        (1, kind.clone(), ids[1].as_str().to_owned(), data(2, &ids[1], 1)),
        (2, kind, ids[0].as_str().to_owned(), data(1, &ids[0], 2)),
    ];
    assert_eq!(events(&fixture.sql().await).await, expected);
}

#[tokio::test]
async fn a_command_with_an_ending_is_not_cancelled() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    store(&runtime, &ids[0], "1").await.unwrap();
    void(&producer, &ids[1]).await.unwrap();
    for id in &ids[..2] {
        let refusal = producer.cancel(&slurm(), id).await.unwrap_err();
        assert!(matches!(refusal, CancelError::AlreadyEnded), "{refusal:?}");
    }
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT cancel_rev FROM site_coordination.stream_head").await, 0);
    assert_eq!(count(&sql, "SELECT count(*) FROM site_coordination.command_cancel").await, 0);
}

#[tokio::test]
async fn a_command_of_another_stream_is_unknown() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let producer = fixture.producer(1);
    for other in [stream(SITE, Environment::K8s), stream("north-2", Environment::Slurm)] {
        producer.enqueue(&other, command("k1")).await.unwrap();
        let refusal = producer.cancel(&other, &ids[0]).await.unwrap_err();
        assert!(matches!(refusal, CancelError::UnknownCommand), "{refusal:?}");
        let refusal = producer.void(&other, &ids[0], &note("x")).await.unwrap_err();
        assert!(matches!(refusal, VoidError::UnknownCommand), "{refusal:?}");
    }
    assert!(events(&fixture.sql().await).await.is_empty());
}

#[tokio::test]
async fn only_the_command_that_is_due_is_voided_and_the_next_one_is_due_then() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(4).await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    let refusal = producer.void(&slurm(), &ids[1], &note("x")).await.unwrap_err();
    assert!(matches!(refusal, VoidError::NotDue { done_seq } if done_seq == seq(0)), "{refusal:?}");
    store(&runtime, &ids[0], "1").await.unwrap();
    let refusal = producer.void(&slurm(), &ids[0], &note("x")).await.unwrap_err();
    assert!(matches!(refusal, VoidError::HasResult), "{refusal:?}");

    let voided = producer.void(&slurm(), &ids[1], &note("  node gone ")).await.unwrap();
    assert_eq!((voided.reason, voided.note.as_deref()), (VoidReason::Operator, Some("node gone")));
    let again = producer.void(&slurm(), &ids[1], &note("another")).await.unwrap();
    assert_eq!(again, voided);
    let shown = producer.show(&slurm(), &ids[1]).await.unwrap().unwrap();
    assert_eq!(shown.voided, Some(voided.clone()));
    assert!(shown.result.is_none() && shown.body.is_some(), "the evidence stays");

    store(&runtime, &ids[2], "3").await.unwrap();
    let listed = producer.list(&slurm(), seq(0), 9).await.unwrap();
    let endings: Vec<_> =
        listed.iter().map(|command| (command.result.is_some(), command.voided.clone())).collect();
    let expected = [(true, None), (false, Some(voided)), (true, None), (false, None)];
    assert_eq!(endings, expected);
    let page = poll(&runtime, after(0)).await.unwrap();
    assert_eq!(page.commands.len(), 4, "the chain goes through a voided command");
    assert_eq!(page.due.unwrap().seq, seq(4));

    let data = serde_json::json!({"site": SITE, "environment": "slurm", "seq": 2,
                                  "commandId": ids[1].as_str(), "reason": "operator"});
    let kind = "commands.command.voided".to_owned();
    let event = (1, kind, ids[1].as_str().to_owned(), data);
    assert_eq!(events(&fixture.sql().await).await, [event], "without what the operator wrote");
}

#[test]
fn a_note_is_one_line_of_at_most_1024_bytes() {
    assert_eq!(note(" a b\n").as_str(), "a b");
    VoidNote::parse(&"x".repeat(1024)).unwrap();
    for wrong in ["", " \n", "a\nb", "a\u{1b}[2J", &"x".repeat(1025), &"é".repeat(513)] {
        VoidNote::parse(wrong).unwrap_err();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_from_everybody_are_numbered_without_a_gap_and_told_once_each() {
    const COMMANDS: usize = 48;
    let fixture = Fixture::create().await;
    let ids = Arc::new(fixture.filled(COMMANDS).await);
    let producer = fixture.producer(32);
    // Each command is cancelled by eight callers, which meet it in different orders.
    let answers = at_once(32, |caller| {
        let (producer, ids) = (producer.clone(), Arc::clone(&ids));
        async move {
            let mut answers = Vec::new();
            for round in 0..COMMANDS / 4 {
                let place = (round * 4 + caller % 4 + caller * 4) % COMMANDS;
                answers.push((place, producer.cancel(&slurm(), &ids[place]).await.unwrap()));
            }
            answers
        }
    })
    .await
    .concat();
    let mut revs = vec![0; COMMANDS];
    for (place, cancelled) in &answers {
        if cancelled.new {
            assert_eq!(revs[*place], 0, "a command was cancelled twice");
            revs[*place] = cancelled.cancel_rev;
        }
    }
    for (place, cancelled) in &answers {
        assert_eq!(cancelled.cancel_rev, revs[*place]);
    }
    let expected: BTreeSet<u64> = (1..=COMMANDS as u64).collect();
    assert_eq!(revs.iter().copied().collect::<BTreeSet<_>>(), expected);

    let sql = fixture.sql().await;
    let rev = count(&sql, "SELECT cancel_rev FROM site_coordination.stream_head").await;
    assert_eq!(rev, COMMANDS as i64);
    let events = events(&sql).await;
    let numbers: Vec<i64> = events.iter().map(|(seq, ..)| *seq).collect();
    assert_eq!(numbers, (1..=COMMANDS as i64).collect::<Vec<_>>());
    for (_, _, subject, data) in events {
        let place = ids.iter().position(|id| id.as_str() == subject).unwrap();
        assert_eq!(data["cancelRev"], revs[place]);
        assert_eq!(data["seq"], place + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_void_and_a_result_at_once_one_is_the_ending() {
    const COMMANDS: usize = 60;
    let fixture = Fixture::create().await;
    let ids = fixture.filled(COMMANDS).await;
    let producer = fixture.producer(16);
    let runtime = Arc::new(fixture.runtime_of(SITE, 16));
    let (mut voids, mut results) = (0, 0);
    for id in &ids {
        let answers = at_once(32, |caller| {
            let (producer, runtime, id) = (producer.clone(), Arc::clone(&runtime), id.clone());
            async move {
                if caller % 2 == 0 {
                    match void(&producer, &id).await {
                        Ok(reason) => {
                            assert_eq!(reason, VoidReason::Operator);
                            true
                        }
                        Err(VoidError::HasResult) => false,
                        Err(error) => panic!("a false answer: {error:?}"),
                    }
                } else {
                    match store(&runtime, &id, "1").await {
                        Ok(_) => false,
                        Err(StoreResultError::AlreadyVoided { .. }) => true,
                        Err(error) => panic!("a false answer: {error:?}"),
                    }
                }
            }
        })
        .await;
        let voided = answers[0];
        assert!(answers.iter().all(|answer| *answer == voided), "two endings: {answers:?}");
        if voided { voids += 1 } else { results += 1 }
    }
    assert!(voids > 0 && results > 0, "{voids} voids and {results} results: no race");
    let sql = fixture.sql().await;
    let done = count(&sql, "SELECT done_seq FROM site_coordination.stream_progress").await;
    assert_eq!(done, COMMANDS as i64);
    let query = "SELECT count(*) FROM site_coordination.";
    assert_eq!(count(&sql, &format!("{query}command_void")).await, voids);
    assert_eq!(count(&sql, &format!("{query}command_result")).await, results);
    assert_eq!(events(&sql).await.len(), voids as usize);
}
