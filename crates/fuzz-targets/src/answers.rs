//! What the client reads: answers of the Site API, and of whatever stands on the way.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::value::RawValue;
use site_client::{
    Backoff, CallError, Next, PollRequest, Refusal, ResultToStore, Writer, command_digest,
    next_chain_digest, parsers::Success, result_digest,
};
use site_coordination::{CommandId, CommandKind, JsonText, NewCommand, ProducerKey, RunId};
use site_protocol::{Command, CommandPage, Digest, Object, PROBLEM_SOURCE, SessionRequest};

use crate::{SECRET, assert_quiet, with_secrets};

/// The first lines are the status, the content type and the header `retry-after`; the rest is the
/// body.
pub(crate) fn answer(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let mut lines = text.splitn(4, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (status, content_type, retry_after) = (next(), next(), next());
    let Ok(status) = StatusCode::from_bytes(status.as_bytes()) else { return };
    let mut headers = HeaderMap::new();
    let named = [(header::CONTENT_TYPE, content_type), (header::RETRY_AFTER, retry_after)];
    for (name, value) in named {
        headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
    }
    let body = Bytes::copy_from_slice(next().as_bytes());
    match Success::of(status, &headers, body.clone()) {
        Ok(success) => {
            assert!(matches!(status, StatusCode::OK | StatusCode::CREATED));
            results(&success, &body);
            let session_id = "0123456789abcdef".to_owned();
            let request = SessionRequest { session_id, expected_generation: 1 };
            match success.session(&request) {
                Ok((session, _)) => {
                    assert!(session.generation >= 2 && session.done_seq <= session.last_seq);
                    assert_eq!(session.session_id, request.session_id);
                }
                Err(error) => unusable(&error),
            }
        }
        Err(error) => refused(&error, status),
    }
}

fn refused(error: &CallError, status: StatusCode) {
    assert!(!matches!(status, StatusCode::OK | StatusCode::CREATED));
    match (error, error.refusal()) {
        (CallError::Problem(problem), Some(refusal)) => {
            assert_eq!(problem.source, PROBLEM_SOURCE);
            assert_eq!(problem.status, status.as_u16());
            assert_eq!(refusal, Refusal::of(problem));
            crate::taken();
            let again = serde_json::from_slice(&serde_json::to_vec(problem).unwrap()).unwrap();
            assert_eq!(Refusal::of(&again), refusal);
        }
        (CallError::NotOurs { status: told, .. }, None) => {
            assert_eq!(*told, status.as_u16());
            assert_quiet(&format!("{error} {error:?}"), SECRET);
        }
        _ => panic!("{error:?}"),
    }
    // Whatever is advised, a Site is not silent for long.
    let wait = Backoff::new(Arc::new(|| u64::MAX)).next(error.retry_after());
    assert!(wait <= Duration::from_secs(61), "{wait:?}");
}

fn results(success: &Success, body: &Bytes) {
    let sent = |id| ResultToStore {
        command_id: id,
        seq: 1,
        chain_digest: Digest::ZERO,
        result: Bytes::from_static(b"{\"outcome\":\"succeeded\"}"),
    };
    let next = Next { limit: 2, wait: Duration::ZERO, cancel_rev: 0 };
    for next in [None, Some(&next)] {
        match success.result(&sent("cmd_1"), next) {
            Ok(stored) => {
                assert_eq!((stored.receipt.command_id.as_str(), stored.receipt.seq), ("cmd_1", 1));
                assert_eq!(stored.receipt.digest, result_digest(&sent("cmd_1").result));
                assert!(stored.next.is_none() || next.is_some());
            }
            Err(error) => unusable(&error),
        }
        match success.results(&[sent("cmd_1"), sent("cmd_2")], next) {
            Ok(stored) => assert_eq!(stored.results.len(), 2),
            Err(error) => unusable(&error),
        }
    }
    assert!(body.len() <= 16 * 1024 * 1024);
}

/// A success that can't be used is told without its body.
fn unusable(error: &CallError) {
    assert!(matches!(error, CallError::BadAnswer(_) | CallError::Chain(_)), "{error:?}");
    assert_quiet(&service_kit::error_chain(error), SECRET);
}

/// The first line is what was asked: the place, the limit, the count of cancels. The rest is a page,
/// whose digests are made right before it is read, so that what comes after them is reached.
pub(crate) fn page(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((asked, body)) = text.split_once('\n') else { return };
    let mut numbers = asked.split(' ').map(|number| number.parse::<u64>().unwrap_or_default());
    let mut number = || numbers.next().unwrap_or_default();
    let (after, limit, cancel_rev) = (number(), u32::try_from(number()).unwrap_or(64), number());
    let Ok(Object(mut page)) = serde_json::from_str::<Object<CommandPage>>(body) else { return };
    assert!(body.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{'), "{body:?}");
    let start = Digest::ZERO;
    let mut chain = start;
    for command in &mut page.commands {
        command.digest = command_digest(command);
        chain = next_chain_digest(&chain, &command.digest);
    }
    page.next_digest = chain;
    let request = PollRequest {
        writer: Writer::FIRST,
        after,
        after_digest: Some(start),
        cancel_rev,
        limit,
        wait: Duration::ZERO,
    };
    let body = Bytes::from(serde_json::to_vec(&page).unwrap());
    let success = Success::of(StatusCode::OK, &HeaderMap::new(), body).ok().unwrap();
    let page = match success.page(&request) {
        Ok(page) => page,
        Err(error) => return unusable(&error),
    };
    if !page.commands.is_empty() {
        crate::taken();
    }
    // Each place once, in order, none left out.
    assert!(page.commands.len() as u64 <= u64::from(limit));
    for (command, seq) in page.commands.iter().zip(1u128..) {
        assert_eq!(u128::from(command.seq), u128::from(after) + seq);
        as_the_context_has_it(command);
        handed_over(command);
    }
    let last = u128::from(after) + page.commands.len() as u128;
    assert_eq!(u128::from(page.next_after), last);
    assert!(page.last_seq >= page.next_after && page.cancelled.len() <= 256);
    assert!(page.head.is_none_or(|head| (1..=page.last_seq).contains(&head.seq)));
    assert!(page.cancelled.is_empty() || page.cancel_rev > cancel_rev);
    assert!(page.cancelled.iter().all(|mark| (1..=page.last_seq).contains(&mark.seq)));
}

/// The digest of a command that a producer could have enqueued is the same on both sides.
fn as_the_context_has_it(command: &Command) {
    let run_id = command.run_id.as_deref().map(RunId::parse);
    let (Ok(id), Ok(kind), Ok(run_id), Ok(body)) = (
        CommandId::parse(&command.command_id),
        CommandKind::parse(&command.kind),
        run_id.transpose(),
        JsonText::parse(command.body.get()),
    ) else {
        return;
    };
    let key = ProducerKey::parse("k").unwrap();
    // Kept to the microsecond by the context, and sent with as many places by the client.
    let not_after = command.not_after;
    let ours = NewCommand { key, kind, run_id, not_after, body }.digest(&id);
    let usual = |time: chrono::DateTime<chrono::Utc>| {
        chrono::DateTime::from_timestamp_micros(time.timestamp_micros()) == Some(time)
    };
    if not_after.is_none_or(usual) {
        assert_eq!(ours.as_bytes(), command.digest.as_bytes());
    }
}

/// A handler gets one line, whose body says what the producer's says.
fn handed_over(command: &Command) {
    let line = site_agent::parsers::invocation(command, 1).unwrap();
    assert_eq!(line.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count(), 1);
    assert!(line.ends_with(b"\n"));
    #[derive(serde::Deserialize)]
    struct Handed<'a> {
        #[serde(borrow)]
        body: &'a RawValue,
    }
    let handed: Handed<'_> = serde_json::from_slice(&line).unwrap();
    let without_breaks = command.body.get().replace(['\n', '\r'], " ");
    assert_eq!(handed.body.get(), without_breaks);
}
