//! What an SSH agent's client reads: pages of changes, snapshots, and the answers to acknowledgements;
//! and what a server reads of it: acknowledgements.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use site_client::{CallError, SshCursor, SshLease, parsers, parsers::Success, ssh_change_digest};
use site_protocol::{
    MAX_SSH_FAILURES, Object, SshAcknowledged, SshAcknowledgement, SshChanges, SshFailure,
    SshOperation,
};

use crate::{SECRET, assert_quiet, heads::assert_problem, with_secrets};

/// The first line is the limit. The rest is a page after the very beginning, whose digests are made
/// right before it is read, so that what comes after them is reached; a head of `=` is where the page
/// ends.
pub(crate) fn changes(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let Some((limit, body)) = text.split_once('\n') else { return };
    let limit = limit.parse().unwrap_or(1_000);
    let as_it_is = success(body);
    if let Err(error) = as_it_is.ssh_changes(SshCursor::START, limit) {
        unusable(&error);
    }
    acknowledged(&as_it_is, body);
    let Ok(Object(mut page)) = serde_json::from_str::<Object<SshChanges>>(body) else { return };
    let mut place = SshCursor::START;
    for change in &mut page.changes {
        change.digest = ssh_change_digest(change);
        place = place.after(&change.digest).unwrap_or(place);
    }
    page.next = place.to_string();
    if page.head == "=" {
        page.head.clone_from(&page.next);
    }
    let read = success(&serde_json::to_string(&page).unwrap());
    let read = match read.ssh_changes(SshCursor::START, limit) {
        Ok(read) => read,
        Err(error) => return unusable(&error),
    };
    if !read.changes.is_empty() {
        crate::taken();
    }
    assert!(read.changes.len() as u64 <= u64::from(limit));
    believable(read.lease);
    // Each place once, in order, none left out, and each change is one that can be applied.
    for (change, seq) in read.changes.iter().zip(1..) {
        assert_eq!(change.seq, seq);
        match change.op {
            SshOperation::Add => assert!(change.public_key.is_some()),
            SshOperation::Remove => assert!(change.enforce_by.is_some()),
        }
    }
    assert_eq!(read.next.seq(), read.changes.len() as u64);
    assert!(read.head == read.next || read.head.seq() > read.next.seq());
    assert_eq!(read.head.to_string().parse(), Ok(read.head));
    // From any other place it is no continuation.
    if let Some(elsewhere) = read.next.after(&read.next.chain_digest()) {
        assert!(
            success(&serde_json::to_string(&page).unwrap()).ssh_changes(elsewhere, limit).is_err()
        );
    }
}

fn acknowledged(success: &Success, body: &str) {
    let cursor = SshCursor::START;
    match success.ssh_acknowledged(cursor) {
        Ok(stored) => {
            let told: SshAcknowledged = serde_json::from_str(body).unwrap();
            assert_eq!(stored.cursor.to_string(), told.cursor);
            assert!(stored.head == stored.cursor || stored.head.seq() > stored.cursor.seq());
        }
        Err(error) => unusable(&error),
    }
}

/// The body of an acknowledgement. What is taken reads alike by the type of the wire, and as that prints
/// it; each user and key fails once, in order, with a reason that can be shown. A refusal is bounded and
/// tells no value.
pub(crate) fn acknowledgement(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let told = match site_api::parsers::acknowledgement(text.as_bytes()) {
        Ok(told) => told,
        Err(problem) => {
            assert_problem(&problem);
            let wire = problem.to_problem("id");
            // A name of a field is repeated, and a secret may stand for one.
            let details: Vec<_> = wire.fields.into_iter().map(|field| field.detail).collect();
            return assert_quiet(&format!("{}{}", wire.detail, details.concat()), SECRET);
        }
    };
    crate::taken();
    let Object(wire): Object<SshAcknowledgement> = serde_json::from_str(&text).unwrap();
    // The type of the wire passes over fields that it does not know.
    let value: Value = serde_json::from_str(&text).unwrap();
    only(&value, &["cursor", "chainDigest", "setDigest", "failures"]);
    for failure in value["failures"].as_array().unwrap() {
        only(failure, &["unixUser", "keyId", "reason"]);
    }
    assert_eq!(wire.cursor, told.cursor.to_string());
    assert_eq!(wire.chain_digest.as_bytes(), told.chain_digest.as_bytes());
    let set_digest = told.set_digest.map(|digest| *digest.as_bytes());
    assert_eq!(wire.set_digest.map(|digest| *digest.as_bytes()), set_digest);

    let failures = told.failures.as_slice();
    assert!(failures.len() <= MAX_SSH_FAILURES);
    assert!(failures.is_sorted_by(|one, next| {
        (&one.unix_user, &one.key_id) < (&next.unix_user, &next.key_id)
    }));
    assert!(failures.iter().all(|one| told.failures.names(&one.unix_user, &one.key_id)));
    let failures = failures.iter().map(|one| SshFailure {
        unix_user: one.unix_user.as_str().to_owned(),
        key_id: one.key_id.as_str().to_owned(),
        reason: one.reason().to_owned(),
    });
    let failures: Vec<_> = failures.collect();
    assert!(failures.iter().all(|one| !one.reason.chars().any(char::is_control)));
    let mut sent = wire.failures.clone();
    sent.sort_by(|one, next| (&one.unix_user, &one.key_id).cmp(&(&next.unix_user, &next.key_id)));
    assert_eq!(failures, sent);

    let again = serde_json::to_vec(&wire).unwrap();
    let again = site_api::parsers::acknowledgement(&again)
        .unwrap_or_else(|problem| panic!("printed again: {:?}", problem.to_problem("")));
    assert_eq!((again.cursor, again.set_digest), (told.cursor, told.set_digest));
    assert_eq!(again.failures, told.failures);
}

fn only(object: &Value, known: &[&str]) {
    let fields = object.as_object().unwrap();
    assert!(fields.keys().all(|field| known.contains(&field.as_str())), "{object}");
}

/// The body of a snapshot. However it arrives, the same is read, and no part of it is a whole one.
pub(crate) fn snapshot(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let read = |body: &[u8], part| parsers::ssh_snapshot(body, part);
    let whole = match read(text.as_bytes(), usize::MAX) {
        Ok(whole) => whole,
        Err(error) => {
            unusable(&error);
            assert!(read(text.as_bytes(), 1).is_err(), "whole where it comes byte by byte");
            return;
        }
    };
    crate::taken();
    for part in [1, 7, 4_096] {
        assert_eq!(read(text.as_bytes(), part).unwrap(), whole, "in parts of {part} bytes");
    }
    let (cursor, lease, keys) = whole;
    assert_eq!(cursor.to_string().parse(), Ok(cursor));
    believable(lease);
    let places: Vec<_> = keys.iter().map(|key| (&key.unix_user, &key.key_id)).collect();
    assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
    for cut in [0, text.len() / 2, text.len() - 1] {
        assert!(read(&text.as_bytes()[..cut], usize::MAX).is_err(), "cut at {cut}");
    }
}

/// For no longer than a day.
fn believable(lease: SshLease) {
    let time = lease.until - lease.server_time;
    assert!(time <= chrono::TimeDelta::days(1));
}

fn success(body: &str) -> Success {
    let body = Bytes::copy_from_slice(body.as_bytes());
    Success::of(StatusCode::OK, &HeaderMap::new(), body).ok().unwrap()
}

/// What can't be used is told without what it holds.
fn unusable(error: &CallError) {
    assert!(matches!(error, CallError::BadAnswer(_) | CallError::Feed(_)), "{error:?}");
    assert_quiet(&service_kit::error_chain(error), SECRET);
}
