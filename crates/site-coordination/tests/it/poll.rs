//! Reading: repeatable, bounded, and the order of the refusals.

use site_coordination::{Digest, Environment, PollError, PollRequest};

use crate::support::{
    Fixture, SITE, after, command, command_with, generation, json, poll, seq, slurm, store, stream,
    taken_over, writer,
};

fn places(page: &site_coordination::Page) -> Vec<i64> {
    page.commands.iter().map(|command| command.seq.get()).collect()
}

fn asked_at(number: i64, digest: Digest) -> PollRequest {
    PollRequest { after_digest: Some(digest), ..after(number) }
}

#[tokio::test]
async fn a_read_claims_nothing_and_can_be_repeated() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(5).await;
    let (runtime, other) = (fixture.runtime(), fixture.runtime());
    let read = async |runtime, number| {
        let page = poll(runtime, after(number)).await.unwrap();
        page.commands.into_iter().map(|command| command.id).collect::<Vec<_>>()
    };
    for _ in 0..3 {
        assert_eq!(read(&runtime, 0).await, ids);
        assert_eq!(read(&other, 2).await, ids[2..]);
        assert_eq!(read(&runtime, 5).await, []);
    }
    // A stored result changes nothing about it.
    store(&runtime, &ids[0], "1").await.unwrap();
    assert_eq!(read(&runtime, 0).await, ids);
}

#[tokio::test]
async fn a_page_says_where_to_go_on() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(5).await;
    let runtime = fixture.runtime();
    let all = poll(&runtime, after(0)).await.unwrap();
    let mut digest = Digest::ZERO;
    for (number, command) in all.commands.iter().enumerate() {
        let page =
            poll(&runtime, PollRequest { limit: 1, ..asked_at(number as i64, digest) }).await;
        let page = page.unwrap();
        digest = digest.chain(command.digest);
        assert_eq!(page.commands[0].id, ids[number]);
        assert_eq!((page.next_after, page.next_digest), (command.seq, digest));
        assert_eq!(page.last_seq, seq(5));
    }
    assert_eq!((all.next_after, all.next_digest), (seq(5), digest));
    let end = poll(&runtime, asked_at(5, digest)).await.unwrap();
    assert!(end.commands.is_empty());
    assert_eq!((end.next_after, end.next_digest), (seq(5), digest));
}

#[tokio::test]
async fn the_head_is_the_command_whose_result_is_due() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let runtime = fixture.runtime();
    fixture
        .sql()
        .await
        .batch_execute(
            "UPDATE site_coordination.command SET created_at = clock_timestamp() - interval '1 hour'",
        )
        .await
        .unwrap();
    for (number, id) in (1..).zip(&ids) {
        let due = poll(&runtime, after(2)).await.unwrap().due.unwrap();
        assert_eq!(due.seq, seq(number));
        assert!((3600..3700).contains(&due.age_seconds), "{}", due.age_seconds);
        store(&runtime, id, "1").await.unwrap();
    }
    assert_eq!(poll(&runtime, after(2)).await.unwrap().due, None);
}

#[tokio::test]
async fn a_page_has_a_limit_of_commands() {
    let fixture = Fixture::create().await;
    fixture.filled(5).await;
    let runtime = fixture.runtime();
    for (limit, expected) in [(1, vec![2]), (2, vec![2, 3]), (4, vec![2, 3, 4, 5])] {
        let page = poll(&runtime, PollRequest { limit, ..after(1) }).await.unwrap();
        assert_eq!(places(&page), expected);
    }
}

#[tokio::test]
async fn a_page_has_a_limit_of_bytes_and_always_one_command() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1);
    // Ten bytes each, in characters of two.
    let body = json("\"éééé\"");
    assert_eq!(body.as_str().len(), 10);
    for key in ["a", "b", "c", "d"] {
        producer.enqueue(&slurm(), command_with(key, body.as_str())).await.unwrap();
    }
    let runtime = fixture.runtime();
    for (bytes, expected) in [
        (0, vec![2]),
        (9, vec![2]),
        (19, vec![2]),
        (20, vec![2, 3]),
        (29, vec![2, 3]),
        (30, vec![2, 3, 4]),
    ] {
        let page = poll(&runtime, PollRequest { bytes, ..after(1) }).await.unwrap();
        assert_eq!(places(&page), expected, "for {bytes} bytes");
    }
}

#[tokio::test]
async fn an_absent_stream_is_an_empty_one() {
    let fixture = Fixture::create().await;
    let runtime = fixture.runtime();
    let page = poll(&runtime, asked_at(0, Digest::ZERO)).await.unwrap();
    assert!(page.commands.is_empty());
    assert_eq!((page.next_after, page.next_digest), (seq(0), Digest::ZERO));
    assert_eq!((page.last_seq, page.due), (seq(0), None));
    assert!(matches!(
        poll(&runtime, after(1)).await.unwrap_err(),
        PollError::CursorAhead { last_seq } if last_seq == seq(0)
    ));
}

#[tokio::test]
async fn a_stream_shows_its_own_commands_only() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1);
    fixture.filled(2).await;
    producer.enqueue(&stream(SITE, Environment::K8s), command("k8s")).await.unwrap();
    producer.enqueue(&stream("north", Environment::Slurm), command("north")).await.unwrap();
    let page = poll(&fixture.runtime(), after(0)).await.unwrap();
    assert_eq!(places(&page), [1, 2]);
    let north = poll(&fixture.runtime_of("north", 1), after(0)).await.unwrap();
    assert_eq!(places(&north), [1]);
}

#[tokio::test]
async fn a_cursor_above_the_end_is_ahead() {
    let fixture = Fixture::create().await;
    fixture.filled(3).await;
    let runtime = fixture.runtime();
    for number in [4, 5, i64::MAX] {
        let refusal = poll(&runtime, after(number)).await.unwrap_err();
        assert!(
            matches!(refusal, PollError::CursorAhead { last_seq } if last_seq == seq(3)),
            "{refusal:?}"
        );
    }
}

#[tokio::test]
async fn another_chain_digest_is_another_history() {
    let fixture = Fixture::create().await;
    fixture.filled(3).await;
    let runtime = fixture.runtime();
    let page = poll(&runtime, after(0)).await.unwrap();
    let at = |number: usize| page.commands[number - 1].chain_digest;
    for (number, wrong) in
        [(0, at(1)), (1, Digest::ZERO), (1, at(2)), (3, at(2)), (3, page.commands[2].digest)]
    {
        let refusal = poll(&runtime, asked_at(number, wrong)).await.unwrap_err();
        assert!(matches!(refusal, PollError::HistoryDiverged), "{refusal:?}");
    }
    for number in 1..=3 {
        poll(&runtime, asked_at(number, at(number as usize))).await.unwrap();
    }
}

#[tokio::test]
async fn the_history_is_checked_before_the_generation() {
    let fixture = Fixture::create().await;
    fixture.filled(1).await;
    let runtime = fixture.runtime();
    let right = poll(&runtime, after(0)).await.unwrap().next_digest;
    taken_over(&runtime, 2).await;

    for (number, writes_with) in [(2, 1), (2, 2), (2, 3)] {
        let request = PollRequest { writer: writer(writes_with), ..asked_at(number, right) };
        let refusal = poll(&runtime, request).await.unwrap_err();
        assert!(matches!(refusal, PollError::CursorAhead { .. }), "{refusal:?}");
    }
    for writes_with in [1, 2, 3] {
        let request = PollRequest { writer: writer(writes_with), ..asked_at(1, Digest::ZERO) };
        let refusal = poll(&runtime, request).await.unwrap_err();
        assert!(matches!(refusal, PollError::HistoryDiverged), "{refusal:?}");
    }
    let stale = poll(&runtime, asked_at(1, right)).await.unwrap_err();
    assert!(
        matches!(stale, PollError::StaleGeneration { current } if current == generation(2)),
        "{stale:?}"
    );
    let above = PollRequest { writer: writer(3), ..asked_at(1, right) };
    assert!(matches!(poll(&runtime, above).await.unwrap_err(), PollError::HistoryDiverged));
    let current = PollRequest { writer: writer(2), ..asked_at(1, right) };
    poll(&runtime, current).await.unwrap();
}

#[tokio::test]
async fn a_gap_is_reported_and_never_served() {
    let fixture = Fixture::create().await;
    fixture.filled(3).await;
    fixture
        .sql()
        .await
        .batch_execute(
            "DELETE FROM site_coordination.command_body WHERE seq = 2;
             DELETE FROM site_coordination.command WHERE seq = 2",
        )
        .await
        .unwrap();
    let runtime = fixture.runtime();
    for number in [0, 1] {
        let fault = poll(&runtime, after(number)).await.unwrap_err();
        assert!(matches!(fault, PollError::Read(_)), "{fault:?}");
    }
}

/// Without the row a Runtime would otherwise be told that every command has its result.
#[tokio::test]
async fn a_stream_without_its_progress_has_its_first_command_due() {
    let fixture = Fixture::create().await;
    fixture.filled(2).await;
    let sql = fixture.sql().await;
    sql.batch_execute("DELETE FROM site_coordination.stream_progress").await.unwrap();
    let page = poll(&fixture.runtime(), after(0)).await.unwrap();
    assert_eq!(page.due.map(|due| due.seq), Some(seq(1)));
}
