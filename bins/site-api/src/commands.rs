//! The command routes: pull the commands of a stream, store their results.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use serde_json::value::RawValue;
use service_kit::{
    Call, ProblemReply,
    body::read_json,
    fields::{Headers, JsonObject, Query, WrongFields},
    json,
    router::Answer,
};
use site_coordination::{
    CommandId, Digest, Generation, JsonText, Outcome, Page, PollRequest, Receipt, Seq, Stored,
    StoredCommand, Writer,
};
use site_protocol::{Code, RUNTIME_GENERATION_HEADER};

use crate::{authenticate::Runtime, problems, state::State};

/// By how much of itself a wait is shortened at random, so that polls don't come in step.
const JITTER: f64 = 0.1;
/// The longest `detail` of a result, in bytes.
const LONGEST_DETAIL: usize = 4096;

/// `GET /v1/site/commands/?after=&afterDigest=&limit=&wait=`.
pub(crate) async fn pull(state: Arc<State>, caller: Runtime, call: Call) -> Answer {
    let limits = &state.limits;
    let mut wrong = WrongFields::new();
    let writer = writer(&call, &mut wrong);
    let mut query = Query::of(&call.head.uri);
    let after = query.optional("after", &mut wrong, Seq::parse).unwrap_or(Seq::ZERO);
    let after_digest = query.optional("afterDigest", &mut wrong, digest);
    let limit = query
        .optional("limit", &mut wrong, |text| number(text, 1, limits.page_commands))
        .unwrap_or(limits.page_commands);
    let wait = query
        .optional("wait", &mut wrong, |text| number(text, 0, limits.longest_wait_seconds))
        .unwrap_or(0);
    query.finish(&mut wrong);
    let writer = wrong.accept(writer)?;

    let wait = shortened(Duration::from_secs(wait), state.fraction());
    let request = PollRequest {
        writer,
        after,
        after_digest,
        cancel_rev: 0,
        limit,
        bytes: limits.page_bytes,
        wait,
    };
    let draining = call.shutdown.clone();
    let polled = state
        .commands
        .poll(caller.environment, request, async move { draining.draining().await })
        .await;
    let page = polled.map_err(|error| problems::poll(&state, error))?;
    metrics::counter!("commands_sent_total", "environment" => caller.environment.as_str())
        .increment(page.commands.len() as u64);
    json(StatusCode::OK, &page_body(page)?)
}

/// `PUT /v1/site/commands/{commandId}/result`.
pub(crate) async fn store_result(state: Arc<State>, caller: Runtime, call: Call) -> Answer {
    let mut wrong = WrongFields::new();
    let writer = writer(&call, &mut wrong);
    let unknown = || ProblemReply::new(Code::NotFound, "the stream has no such command");
    let command = CommandId::parse(call.params.get("commandId")).map_err(|_| unknown())?;
    Query::of(&call.head.uri).finish(&mut wrong);
    let bytes = read_json(&call.head.headers, call.body, state.limits.json_body()).await?;
    let (outcome, body) = result(&bytes, &mut wrong)?;
    let (writer, outcome) = wrong.accept(writer.zip(outcome))?;

    let stored =
        state.commands.store_result(caller.environment, &writer, &command, outcome, &body).await;
    let (receipt, now) = stored.map_err(|error| problems::store_result(&state, error))?;
    let status = match now {
        Stored::New => {
            metrics::counter!(
                "results_stored_total",
                "environment" => caller.environment.as_str(), "outcome" => outcome.as_str()
            )
            .increment(1);
            StatusCode::CREATED
        }
        Stored::Same => StatusCode::OK,
    };
    json(status, &receipt_body(&receipt))
}

fn writer(call: &Call, wrong: &mut WrongFields) -> Option<Writer> {
    let parse = |text: &str| Writer::new(Generation::parse(text)?, None);
    Headers::of(&call.head.headers).required(RUNTIME_GENERATION_HEADER, wrong, parse)
}

/// Checks the body of a result; what is stored are its exact bytes without outer white space.
fn result(
    bytes: &[u8],
    wrong: &mut WrongFields,
) -> Result<(Option<Outcome>, JsonText), ProblemReply> {
    let mut object = JsonObject::parse(bytes)?;
    let outcome = object
        .required::<String>("outcome", wrong, "succeeded, failed or rejected")
        .and_then(|word| wrong.check("outcome", Outcome::parse(&word)));
    let detail = object.optional::<String>("detail", wrong, "a text");
    if detail.is_some_and(|detail| detail.len() > LONGEST_DETAIL) {
        wrong.push("detail", format!("has more than {LONGEST_DETAIL} bytes"));
    }
    let _any_json = object.optional_raw("output", wrong);
    object.finish(wrong);
    let malformed = |_| ProblemReply::new(Code::MalformedBody, "the body is not JSON in UTF-8");
    let text = std::str::from_utf8(bytes).map_err(malformed)?;
    let body = JsonText::parse(text)
        .map_err(|reason| ProblemReply::new(Code::MalformedBody, reason.to_string()))?;
    Ok((outcome, body))
}

fn digest(text: &str) -> Result<Digest, site_protocol::DigestError> {
    text.parse().map(|digest: site_protocol::Digest| Digest::from_bytes(*digest.as_bytes()))
}

/// A wait that is shortened by `fraction`, 0 to 1, of what may be taken from it.
fn shortened(wait: Duration, fraction: f64) -> Duration {
    wait.mul_f64(1.0 - JITTER * fraction)
}

/// A decimal number from `least` to `most`, without a sign or a leading zero.
fn number<T>(text: &str, least: T, most: T) -> Result<T, String>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let decimal =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse()
        .ok()
        .filter(|number| decimal && *number >= least && *number <= most)
        .ok_or_else(|| format!("must be a number from {least} to {most}"))
}

fn page_body(page: Page) -> Result<site_protocol::CommandPage, ProblemReply> {
    Ok(site_protocol::CommandPage {
        commands: page.commands.into_iter().map(command_body).collect::<Result<_, _>>()?,
        next_after: page.next_after.to_u64(),
        next_digest: wire(page.next_digest),
        last_seq: page.last_seq.to_u64(),
        head: page
            .due
            .map(|due| site_protocol::Head { seq: due.seq.to_u64(), age_seconds: due.age_seconds }),
        cancel_rev: 0,
        cancelled: Vec::new(),
        server_time: page.time,
        superseded: page.superseded,
    })
}

fn command_body(command: StoredCommand) -> Result<site_protocol::Command, ProblemReply> {
    Ok(site_protocol::Command {
        command_id: command.id.as_str().to_owned(),
        seq: command.seq.to_u64(),
        kind: command.kind,
        run_id: command.run_id,
        not_after: command.not_after,
        voided: command.voided,
        digest: wire(command.digest),
        created_at: command.created_at,
        body: RawValue::from_string(command.body.into_string()).map_err(ProblemReply::internal)?,
    })
}

fn receipt_body(receipt: &Receipt) -> site_protocol::Receipt {
    site_protocol::Receipt {
        command_id: receipt.command_id.as_str().to_owned(),
        seq: receipt.seq.to_u64(),
        digest: wire(receipt.digest),
        outcome: match receipt.outcome {
            Outcome::Succeeded => site_protocol::Outcome::Succeeded,
            Outcome::Failed => site_protocol::Outcome::Failed,
            Outcome::Rejected => site_protocol::Outcome::Rejected,
        },
        received_at: receipt.received_at,
    }
}

fn wire(digest: Digest) -> site_protocol::Digest {
    site_protocol::Digest::from_bytes(*digest.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_shortened_by_a_tenth_at_the_most() {
        let longest = Duration::from_secs(25);
        assert_eq!(shortened(longest, 0.0), longest);
        assert_eq!(shortened(longest, 0.5), Duration::from_millis(23_750));
        assert_eq!(shortened(longest, 1.0), Duration::from_millis(22_500));
        assert_eq!(shortened(Duration::ZERO, 1.0), Duration::ZERO);
    }

    #[test]
    fn a_number_has_one_spelling() {
        assert_eq!(number("0", 0, 25), Ok(0));
        assert_eq!(number("25", 0, 25), Ok(25));
        for text in ["", "26", "-1", "+1", "01", "00", "1.0", "1e0", " 1", "1 ", "\u{0661}"] {
            assert!(number(text, 0, 25).is_err(), "{text:?}");
        }
    }
}
