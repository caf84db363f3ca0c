use super::*;
use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use site_protocol::{Cancelled, Head};

fn command(seq: u64, run_id: Option<&str>, body: &str) -> Command {
    let mut command = Command {
        command_id: format!("cmd_{seq}"),
        seq,
        kind: "slurm.submit".to_owned(),
        run_id: run_id.map(str::to_owned),
        not_after: None,
        voided: false,
        digest: Digest::ZERO,
        created_at: DateTime::<Utc>::UNIX_EPOCH,
        body: RawValue::from_string(body.to_owned()).unwrap(),
    };
    command.digest = command_digest(&command);
    command
}

/// A page after `after`, whose chain starts from `digest`.
fn page(after: u64, digest: Digest, count: u64) -> CommandPage {
    let commands: Vec<_> =
        (after + 1..=after + count).map(|seq| command(seq, None, "{}")).collect();
    let next_digest = commands.iter().fold(digest, |d, c| next_chain_digest(&d, &c.digest));
    CommandPage {
        next_after: after + count,
        next_digest,
        last_seq: after + count,
        head: (count > 0).then_some(Head { seq: after + 1, age_seconds: 0 }),
        cancel_rev: 0,
        cancelled: Vec::new(),
        server_time: DateTime::<Utc>::UNIX_EPOCH,
        superseded: false,
        commands,
    }
}

fn some_digest() -> Digest {
    Digest::from_bytes([7; 32])
}

#[test]
fn the_layout_is_the_documented_one() {
    // The bytes written out by hand, to be compared with `docs/PROTOCOL.md`.
    let mut bytes = Vec::new();
    bytes.extend_from_slice(b"\0\0\0\x14site-control/command\0\0\0\0\0\0\0\x011");
    bytes.extend_from_slice(b"\0\0\0\x09commandId\0\0\0\0\0\0\0\x05cmd_1");
    bytes.extend_from_slice(b"\0\0\0\x04kind\0\0\0\0\0\0\0\x0cslurm.submit");
    let head = bytes.clone();
    bytes.extend_from_slice(b"\0\0\0\x04body\0\0\0\0\0\0\0\x08{ \"a\":1}");
    assert_eq!(
        command_digest(&command(1, None, "{ \"a\":1}")),
        ours(&digest(&SHA256, &bytes)),
        "without a Run"
    );
    let mut bytes = head.clone();
    bytes.extend_from_slice(b"\0\0\0\x05runId\0\0\0\0\0\0\0\x02r1");
    bytes.extend_from_slice(b"\0\0\0\x04body\0\0\0\0\0\0\0\x08{ \"a\":1}");
    assert_eq!(
        command_digest(&command(1, Some("r1"), "{ \"a\":1}")),
        ours(&digest(&SHA256, &bytes))
    );
    let mut bytes = head;
    bytes.extend_from_slice(b"\0\0\0\x08notAfter\0\0\0\0\0\0\0\x1b2026-01-01T00:00:00.000000Z");
    bytes.extend_from_slice(b"\0\0\0\x04body\0\0\0\0\0\0\0\x08{ \"a\":1}");
    let mut dated = command(1, None, "{ \"a\":1}");
    dated.not_after = Some("2026-01-01T01:00:00+01:00".parse().unwrap());
    assert_eq!(command_digest(&dated), ours(&digest(&SHA256, &bytes)), "with notAfter");
}

#[test]
fn each_field_and_its_place_changes_the_digest() {
    let base = command(1, None, "{}");
    let mut other_id = base.clone();
    other_id.command_id.push('x');
    let mut other_kind = base.clone();
    other_kind.kind.push('x');
    let mut empty_run = base.clone();
    empty_run.run_id = Some(String::new());
    let mut shifted = base.clone();
    shifted.command_id.push_str("slurm");
    shifted.kind = ".submit".to_owned();
    for other in [other_id, other_kind, empty_run, shifted, command(1, None, "{ }")] {
        assert_ne!(command_digest(&other), base.digest);
    }
}

#[test]
fn a_page_that_continues_is_good_with_and_without_commands() {
    for count in [0, 1, 3] {
        let page = page(4, some_digest(), count);
        assert_eq!(check_page(&page, 4, Some(&some_digest()), 0), Ok(()), "{count}");
    }
}

#[test]
fn the_first_page_starts_from_zero_also_when_no_digest_is_presented() {
    let good = page(0, Digest::ZERO, 2);
    assert_eq!(check_page(&good, 0, None, 0), Ok(()));
    let other = page(0, some_digest(), 2);
    assert_eq!(check_page(&other, 0, None, 0), Err(ChainError::ChainDigest { seq: 2 }));
}

#[test]
fn without_a_digest_the_chain_is_believed_and_the_commands_are_not() {
    let mut page = page(4, some_digest(), 2);
    assert_eq!(check_page(&page, 4, None, 0), Ok(()));
    page.commands[1].kind = "another".to_owned();
    assert_eq!(check_page(&page, 4, None, 0), Err(ChainError::CommandDigest { seq: 6 }));
}

#[test]
fn a_gap_a_repetition_and_a_swap_are_found() {
    let good = page(4, some_digest(), 3);
    let check = |page: &CommandPage| check_page(page, 4, Some(&some_digest()), 0);
    let mut gap = good.clone();
    gap.commands.remove(1);
    assert_eq!(check(&gap), Err(ChainError::Gap { expected: 6, found: 7 }));
    let mut again = good.clone();
    again.commands[1] = again.commands[0].clone();
    assert_eq!(check(&again), Err(ChainError::Gap { expected: 6, found: 5 }));
    let mut swapped = good;
    swapped.commands.swap(0, 1);
    assert_eq!(check(&swapped), Err(ChainError::Gap { expected: 5, found: 6 }));
}

#[test]
fn another_history_is_found_by_the_chain() {
    let other = page(4, Digest::from_bytes([8; 32]), 2);
    let found = check_page(&other, 4, Some(&some_digest()), 0);
    assert_eq!(found, Err(ChainError::ChainDigest { seq: 6 }));
    let empty = page(4, Digest::from_bytes([8; 32]), 0);
    let found = check_page(&empty, 4, Some(&some_digest()), 0);
    assert_eq!(found, Err(ChainError::ChainDigest { seq: 4 }));
}

#[test]
fn a_cursor_or_bounds_that_contradict_the_commands_are_found() {
    let check = |page: &CommandPage| check_page(page, 4, Some(&some_digest()), 0);
    let good = page(4, some_digest(), 2);
    let mut next = good.clone();
    next.next_after = 5;
    assert_eq!(check(&next), Err(ChainError::NextAfter { expected: 6, found: 5 }));
    let mut short = good.clone();
    short.last_seq = 5;
    assert_eq!(check(&short), Err(ChainError::Bounds));
    for seq in [0, 7] {
        let mut head = good.clone();
        head.head = Some(Head { seq, age_seconds: 0 });
        assert_eq!(check(&head), Err(ChainError::Bounds));
    }
}

#[test]
fn marks_that_the_stream_can_not_have_and_old_news_are_found() {
    let marked = |seqs: &[u64], cancel_rev| {
        let mut page = page(4, some_digest(), 2);
        page.cancel_rev = cancel_rev;
        let mark = |seq: &u64| Cancelled { command_id: format!("cmd_{seq}"), seq: *seq };
        page.cancelled = seqs.iter().map(mark).collect();
        page
    };
    let check = |page: &CommandPage| check_page(page, 4, Some(&some_digest()), 7);
    assert_eq!(check(&marked(&[6, 5, 6], 8)), Ok(()));
    // Without a mark the count may be any: it is another one after a database was restored.
    assert_eq!(check(&marked(&[], 3)), Ok(()));
    for wrong in [marked(&[7], 8), marked(&[0], 8), marked(&[5], 7), marked(&[5; 257], 300)] {
        assert_eq!(check(&wrong), Err(ChainError::Cancelled));
    }
}

#[test]
fn a_results_identity_ignores_outer_white_space_only() {
    assert_eq!(result_digest(b" \n{ \"a\":1}\t\r\n"), result_digest(b"{ \"a\":1}"));
    assert_ne!(result_digest(b"{\"a\":1}"), result_digest(b"{ \"a\":1}"));
    assert_eq!(result_digest(b"  "), result_digest(b""));
}

#[test]
fn after_the_last_number_there_is_no_place() {
    let mut last = page(u64::MAX - 1, some_digest(), 1);
    check_page(&last, u64::MAX - 1, Some(&some_digest()), 0).unwrap();
    last.next_digest = next_chain_digest(&some_digest(), &last.commands[0].digest);
    let gap = ChainError::Gap { expected: u64::MAX, found: u64::MAX };
    assert_eq!(check_page(&last, u64::MAX, Some(&some_digest()), 0), Err(gap));
}
