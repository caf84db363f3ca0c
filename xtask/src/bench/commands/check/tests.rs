//! A record of a load that was done right, and each manipulation of it that must void the load.

use std::time::Instant;

use serde_json::json;
use site_protocol::{Digest, Receipt};

use super::*;

/// Five commands after the tenth: two callers, the second with one call of two commands.
fn right() -> Record {
    let told = |seqs: &[u64]| seqs.iter().map(|seq| acknowledged(*seq)).collect();
    Record {
        after: 10,
        told: vec![told(&[11, 14, 15]), told(&[12, 13])],
        answered: (11..=15).map(answered).collect(),
        stored: (11..=15).map(stored).collect(),
    }
}

fn id(seq: u64) -> String {
    format!("cmd_{seq}")
}

fn acknowledged(seq: u64) -> Acknowledged {
    Acknowledged { seq, command_id: id(seq) }
}

fn digest(seq: u64) -> Digest {
    Digest::from_bytes([u8::try_from(seq).unwrap(); 32])
}

fn answered(seq: u64) -> Answered {
    let receipt = json!({
        "commandId": id(seq), "seq": seq, "digest": digest(seq), "outcome": "succeeded",
        "receivedAt": "2026-01-01T00:00:00Z",
    });
    let receipt: Receipt = serde_json::from_value(receipt).unwrap();
    Answered { seq, command_id: id(seq), receipt, stored: Stored::New, at: Instant::now() }
}

fn stored(seq: u64) -> StoredRow {
    StoredRow { seq, command_id: id(seq), result: Some(digest(seq).as_bytes().to_vec()) }
}

/// What the check says of the record with a change.
fn check(change: impl FnOnce(&mut Record)) -> Result<(), Void> {
    let mut record = right();
    change(&mut record);
    record.check()
}

#[test]
fn what_was_done_right_is_not_void() {
    assert_eq!(right().check(), Ok(()));
}

#[test]
fn a_gap_in_the_stream_is_void() {
    let gap = check(|record| {
        record.stored.remove(2);
    });
    assert_eq!(gap, Err(Void::Gap(14)));
}

#[test]
fn a_command_that_is_not_at_its_place_is_void() {
    let swapped = check(|record| {
        record.stored[1].command_id = id(13);
        record.stored[2].command_id = id(12);
    });
    assert_eq!(swapped, Err(Void::Lost(12)));
}

#[test]
fn a_command_before_one_that_was_acknowledged_earlier_is_void() {
    let reordered = check(|record| record.told[0].swap(1, 2));
    assert_eq!(reordered, Err(Void::OrderOfCalls(14)));
}

#[test]
fn a_command_that_nobody_was_told_of_is_void() {
    let unknown = check(|record| {
        record.told[1].pop();
    });
    assert_eq!(unknown, Err(Void::Count { told: 4, stored: 5 }));
}

#[test]
fn an_end_that_is_lost_is_void() {
    let lost = check(|record| {
        record.stored.pop();
    });
    assert_eq!(lost, Err(Void::Count { told: 5, stored: 4 }));
}

#[test]
fn commands_answered_in_another_order_are_void() {
    assert_eq!(check(|record| record.answered.swap(1, 2)), Err(Void::Reorder(13)));
    let twice = check(|record| record.answered.insert(2, answered(12)));
    assert_eq!(twice, Err(Void::Reorder(12)));
}

#[test]
fn a_command_without_an_answer_is_void() {
    let unanswered = check(|record| {
        record.answered.pop();
    });
    assert_eq!(unanswered, Err(Void::Result(15)));
}

#[test]
fn a_result_that_is_gone_or_another_is_void() {
    assert_eq!(check(|record| record.stored[3].result = None), Err(Void::Result(14)));
    let other = check(|record| record.stored[3].result = Some(vec![0; 32]));
    assert_eq!(other, Err(Void::Result(14)));
}

#[test]
fn a_result_that_was_there_before_is_void() {
    let second = check(|record| record.answered[4].stored = Stored::Same);
    assert_eq!(second, Err(Void::Second(15)));
}
