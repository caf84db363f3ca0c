use super::*;
use proptest::prelude::*;
use serde_json::json;

fn head() -> String {
    json!({"cursor": format!("0.{}", "0".repeat(64)), "serverTime": "2026-01-02T03:04:05Z",
        "leaseUntil": "2026-01-02T03:13:05Z"})
    .to_string()
}

fn key(user: &str, id: &str) -> String {
    json!({"unixUser": user, "keyId": id, "memberId": "m", "publicKey": "ssh-ed25519 AAAA"})
        .to_string()
}

fn end(count: u64) -> String {
    json!({"complete": true, "count": count}).to_string()
}

/// Reads a body that arrives in these parts; gives the ids of its keys.
fn read(parts: &[&[u8]]) -> Result<Vec<String>, CallError> {
    let (mut lines, mut content, mut keys) = (Lines::default(), None, Vec::new());
    for part in parts {
        lines.push(Bytes::copy_from_slice(part));
        while let Some(line) = lines.next()? {
            match &mut content {
                None => content = Some(Content::begin(&line)?),
                Some(content) => keys.extend(content.take(&line)?.map(|key| key.key_id)),
            }
        }
    }
    lines.ended()?;
    content.ok_or(incomplete(0))?.ended()?;
    Ok(keys)
}

fn read_lines(lines: &[String]) -> Result<Vec<String>, CallError> {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    read(&[body.as_bytes()])
}

fn wrong_line(lines: &[String]) -> u64 {
    match read_lines(lines) {
        Err(CallError::BadAnswer(BadAnswer::Snapshot { line })) => line,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_snapshot_is_read_and_so_is_an_empty_one() {
    let lines = [head(), key("alice", "a"), key("alice", "b"), key("bob", "a"), end(3)];
    assert_eq!(read_lines(&lines).unwrap(), ["a", "b", "a"]);
    assert_eq!(read_lines(&[head(), end(0)]).unwrap(), [""; 0]);
}

#[test]
fn what_ends_early_is_no_snapshot() {
    let lines = [head(), key("alice", "a"), key("bob", "a"), end(2)];
    for count in 0..lines.len() {
        let error = read_lines(&lines[..count]).unwrap_err();
        let incomplete =
            matches!(error, CallError::BadAnswer(BadAnswer::IncompleteSnapshot { .. }));
        assert!(incomplete, "{count}: {error:?}");
    }
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    for length in 0..body.len() {
        assert!(read(&[&body.as_bytes()[..length]]).is_err(), "cut at {length}");
    }
}

#[test]
fn each_line_that_is_wrong_is_told_by_its_number() {
    assert_eq!(wrong_line(&["<html>".to_owned()]), 1);
    assert_eq!(wrong_line(&[head().replace("0.0", "1")]), 1);
    assert_eq!(wrong_line(&[head(), "{}".to_owned()]), 2);
    assert_eq!(wrong_line(&[head(), key("bob", "a"), key("alice", "a")]), 3);
    assert_eq!(wrong_line(&[head(), key("bob", "b"), key("bob", "a")]), 3);
    assert_eq!(wrong_line(&[head(), key("bob", "a"), key("bob", "a")]), 3);
    assert_eq!(wrong_line(&[head(), key("bob", "a"), end(0)]), 3);
    assert_eq!(wrong_line(&[head(), end(1)]), 2);
    let not_complete = json!({"complete": false, "count": 0}).to_string();
    assert_eq!(wrong_line(&[head(), not_complete]), 2);
    assert_eq!(wrong_line(&[head(), end(0), end(0)]), 3);
    assert_eq!(wrong_line(&[head(), key("bob", "a"), end(1), key("carol", "a")]), 4);
}

#[test]
fn no_list_is_taken_for_a_line() {
    let values = |line: &str, names: &[&str]| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        names.iter().map(|name| line[*name].clone()).collect::<serde_json::Value>().to_string()
    };
    let head_list = values(&head(), &["cursor", "serverTime", "leaseUntil"]);
    assert_eq!(wrong_line(&[head_list, end(0)]), 1);
    let names = ["unixUser", "keyId", "memberId", "publicKey", "expiresAt"];
    assert_eq!(wrong_line(&[head(), values(&key("bob", "a"), &names), end(1)]), 2);
    assert_eq!(wrong_line(&[head(), values(&end(0), &["complete", "count"])]), 2);
}

#[test]
fn a_lease_of_longer_than_a_day_is_not_believed() {
    let until = |until| head().replace("2026-01-02T03:13:05Z", until);
    let error = read_lines(&[until("2026-01-03T03:04:05.1Z"), end(0)]).unwrap_err();
    assert!(matches!(error, CallError::BadAnswer(BadAnswer::Lease)), "{error:?}");
    read_lines(&[until("2026-01-03T03:04:05Z"), end(0)]).unwrap();
}

#[test]
fn a_lease_that_is_over_is_told_and_the_snapshot_is_read() {
    for (until, over) in [
        ("2026-01-02T03:04:05.1Z", false),
        ("2026-01-02T03:04:05Z", true),
        ("2025-01-01T00:00:00Z", true),
    ] {
        let head = head().replace("2026-01-02T03:13:05Z", until);
        let content = Content::begin(head.as_bytes()).unwrap();
        assert_eq!(content.lease.is_over(), over, "{until}");
        read_lines(&[head, end(0)]).unwrap();
    }
}

#[test]
fn a_line_is_bounded_whether_it_ends_or_not() {
    let longest = "x".repeat(MAX_SNAPSHOT_LINE_BYTES - 1);
    let mut lines = Lines::default();
    lines.push(format!("{longest}\n").into());
    assert_eq!(lines.next().unwrap().unwrap().len(), longest.len());
    lines.push(format!("x{longest}\n").into());
    let error = lines.next().unwrap_err();
    assert!(matches!(error, CallError::BadAnswer(BadAnswer::Snapshot { line: 2 })), "{error:?}");
    let mut endless = Lines::default();
    let mut taken = 0;
    let error = loop {
        endless.push(Bytes::from_static(&[b'x'; 1000]));
        match endless.next() {
            Ok(line) => assert_eq!(line, None),
            Err(error) => break error,
        }
        taken += 1000;
        assert!(taken <= MAX_SNAPSHOT_LINE_BYTES, "it is kept without a bound");
    };
    assert!(matches!(error, CallError::BadAnswer(BadAnswer::Snapshot { line: 1 })), "{error:?}");
}

proptest! {
    #[test]
    fn however_it_arrives_the_same_is_read(cuts in prop::collection::vec(0_usize..400, 0..6)) {
        let lines = [head(), key("alice", "a"), key("bob", "a"), end(2)];
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let parts: Vec<_> = cuts.windows(2).map(|pair| &body.as_bytes()[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&parts).unwrap(), ["a", "a"]);
    }
}
