//! What a poll tells of cancels and of voided commands.

use std::time::Duration;

use site_coordination::{CommandId, Page, PollError, PollRequest, VoidNote};

use crate::support::{
    Fixture, LONG, after, batch, command, poll, result, seq, slurm, store, taken_over,
};
use site_coordination::Writer;

/// A question for what was cancelled after `cancel_rev`, without commands.
fn cancels(cancel_rev: u64) -> PollRequest {
    PollRequest { cancel_rev, limit: 0, ..after(0) }
}

fn told(page: &Page) -> Vec<CommandId> {
    page.cancelled.iter().map(|mark| mark.id.clone()).collect()
}

#[tokio::test]
async fn a_poll_tells_the_open_cancels_after_the_one_that_it_knows() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(5).await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    assert_eq!(poll(&runtime, cancels(0)).await.unwrap().cancel_rev, 0);
    for place in [3, 0, 4] {
        producer.cancel(&slurm(), &ids[place]).await.unwrap();
    }
    let page = poll(&runtime, cancels(0)).await.unwrap();
    assert_eq!(told(&page), [ids[3].clone(), ids[0].clone(), ids[4].clone()], "in their order");
    assert_eq!(page.cancelled[0].seq, seq(4));
    assert!(page.commands.is_empty());
    assert_eq!((page.cancel_rev, page.next_after, page.last_seq), (3, seq(0), seq(5)));

    for (known, expected) in [(1, vec![0, 4]), (2, vec![4]), (3, vec![])] {
        let page = poll(&runtime, cancels(known)).await.unwrap();
        assert_eq!(
            told(&page),
            expected.into_iter().map(|n: usize| ids[n].clone()).collect::<Vec<_>>()
        );
        assert_eq!(page.cancel_rev, 3);
    }
    // One with commands tells them too, wherever it reads, and each once.
    let page = poll(&runtime, after(0)).await.unwrap();
    assert_eq!((page.commands.len(), page.cancelled.len()), (5, 3));
    let page = poll(&runtime, after(5)).await.unwrap();
    assert_eq!((page.commands.len(), page.cancelled.len()), (0, 3));
    // A command with its ending is over, cancelled or not.
    store(&runtime, &ids[0], "1").await.unwrap();
    let page = poll(&runtime, cancels(0)).await.unwrap();
    assert_eq!(told(&page), [ids[3].clone(), ids[4].clone()]);
}

#[tokio::test]
async fn more_cancels_than_a_page_tells_come_with_the_next() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(300).await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    for id in ids.iter().rev() {
        producer.cancel(&slurm(), id).await.unwrap();
    }
    let first = poll(&runtime, cancels(0)).await.unwrap();
    assert_eq!((first.cancelled.len(), first.cancel_rev), (Page::MOST_CANCELLED, 256));
    let second = poll(&runtime, cancels(first.cancel_rev)).await.unwrap();
    assert_eq!((second.cancelled.len(), second.cancel_rev), (44, 300));
    let both: Vec<_> = told(&first).into_iter().chain(told(&second)).rev().collect();
    assert_eq!(both, ids);
    // Also beside commands, of which each row would repeat them.
    let page = poll(&runtime, after(0)).await.unwrap();
    assert_eq!((page.commands.len(), told(&page)), (300, told(&first)));
}

#[tokio::test]
async fn a_count_above_that_of_the_stream_begins_again_at_once() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    for known in [1, 7, u64::MAX] {
        let question = PollRequest { wait: LONG * 2, ..cancels(known) };
        let page = tokio::time::timeout(LONG, poll(&runtime, question)).await.unwrap().unwrap();
        assert_eq!((page.cancelled.len(), page.cancel_rev), (0, 0), "it knows {known}");
    }
    // The restored stream gives out the numbers again that the caller knows from before.
    producer.cancel(&slurm(), &ids[1]).await.unwrap();
    let page = poll(&runtime, cancels(7)).await.unwrap();
    assert_eq!((page.cancelled.len(), page.cancel_rev), (0, 0));
    let page = poll(&runtime, cancels(page.cancel_rev)).await.unwrap();
    assert_eq!((told(&page), page.cancel_rev), (vec![ids[1].clone()], 1));
}

#[tokio::test]
async fn a_poll_for_cancels_alone_is_checked_like_any_other() {
    let fixture = Fixture::create().await;
    fixture.filled(1).await;
    let runtime = fixture.runtime();
    let ahead = PollRequest { after: seq(2), ..cancels(0) };
    assert!(matches!(poll(&runtime, ahead).await, Err(PollError::CursorAhead { .. })));
    let other =
        PollRequest { after_digest: Some(site_coordination::Digest::of(b"other")), ..cancels(0) };
    assert!(matches!(poll(&runtime, other).await, Err(PollError::HistoryDiverged)));
    taken_over(&runtime, 2).await;
    assert!(matches!(poll(&runtime, cancels(0)).await, Err(PollError::StaleGeneration { .. })));
}

#[tokio::test]
async fn a_poll_for_cancels_alone_does_not_end_with_commands() {
    let fixture = Fixture::create().await;
    fixture.filled(2).await;
    let runtime = fixture.runtime();
    let wait = Duration::from_millis(200);
    let begun = tokio::time::Instant::now();
    let page = poll(&runtime, PollRequest { wait, ..cancels(0) }).await.unwrap();
    assert!(begun.elapsed() >= wait && page.commands.is_empty());
}

#[tokio::test]
async fn a_voided_command_is_shown_as_one_and_the_chain_goes_through_it() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(4).await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    let note = VoidNote::parse("stuck").unwrap();
    for place in [0, 2] {
        producer.void(&slurm(), &ids[place], &note).await.unwrap();
        batch(&runtime, &Writer::FIRST, vec![result(&ids[place + 1], "1")]).await;
    }
    let page = poll(&runtime, after(0)).await.unwrap();
    let voided: Vec<bool> = page.commands.iter().map(|command| command.voided).collect();
    assert_eq!(voided, [true, false, true, false]);
    let mut digest = site_coordination::Digest::ZERO;
    for command in &page.commands {
        digest = digest.chain(command.digest);
        assert_eq!(command.chain_digest, digest);
    }
    producer.enqueue(&slurm(), command("k5")).await.unwrap();
    assert_eq!(poll(&runtime, after(4)).await.unwrap().due.map(|due| due.seq), Some(seq(5)));
}
