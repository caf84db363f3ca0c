//! `PUT /v1/site/commands/{commandId}/result` and `PUT /v1/site/commands/results`.

use std::{collections::HashSet, sync::Arc};

use http::{StatusCode, Uri};
use serde_json::value::RawValue;
use service_kit::{
    Call, ProblemReply,
    body::read_json,
    fields::{JsonObject, Query, WrongFields},
    json,
    router::Answer,
};
use site_coordination::{
    CommandId, Environment, JsonText, NewResult, NextRequest, Outcome, Receipt, Stored,
};
use site_protocol::Code;

use super::{request, wire};
use crate::{authenticate::Runtime, limits::Limits, problems, state::State};

/// The longest `detail` of a result, in bytes.
const LONGEST_DETAIL: usize = 4096;

/// Stores the result of the command that is due.
pub(crate) async fn store_result(state: Arc<State>, caller: Runtime, call: Call) -> Answer {
    let mut wrong = WrongFields::new();
    let writer = request::writer(&call.head.headers, &mut wrong);
    let command = request::command(&call)?;
    let next = next(&call.head.uri, &mut wrong, &state.limits, state.fraction());
    let bytes = read_json(&call.head.headers, call.body, state.limits.json_body()).await?;
    let result = result(command, &bytes, &mut wrong)?;
    let (writer, result) = wrong.accept(writer.zip(result))?;

    let release = async move { call.shutdown.draining().await };
    let environment = caller.environment;
    let stored =
        state.commands.store_result_and_next(environment, &writer, result, next, release).await;
    let (receipt, now, page) = stored.map_err(|error| problems::store_result(&state, error))?;
    count(environment, &receipt, now);
    let receipt = wire::receipt(&receipt);
    if next.is_none() {
        return json(status(now), &receipt);
    }
    let next = page.map(|page| wire::page(page, environment)).transpose()?;
    json(status(now), &site_protocol::ReceiptAndNext { receipt, next })
}

/// Stores the results of consecutive commands, each with a verdict of its own.
pub(crate) async fn store_results(state: Arc<State>, caller: Runtime, call: Call) -> Answer {
    let mut wrong = WrongFields::new();
    let writer = request::writer(&call.head.headers, &mut wrong);
    let next = next(&call.head.uri, &mut wrong, &state.limits, state.fraction());
    let bytes = read_json(&call.head.headers, call.body, state.limits.json_body()).await?;
    let mut object = JsonObject::parse(&bytes)?;
    let results = batch(&mut object, &mut wrong, state.limits.page_commands);
    object.finish(&mut wrong);
    let (writer, results) = wrong.accept(writer.zip(results))?;
    let commands: Vec<_> =
        results.iter().map(|result| result.command.as_str().to_owned()).collect();

    let shutdown = call.shutdown.clone();
    let release = async move { shutdown.draining().await };
    let environment = caller.environment;
    let stored = state.commands.store_results(environment, &writer, results, next, release).await;
    let stored = stored.map_err(|error| problems::read(&state, error))?;
    for (receipt, now) in stored.verdicts.iter().flatten() {
        count(environment, receipt, *now);
    }
    let mut answers = Vec::with_capacity(commands.len());
    for (command_id, verdict) in commands.into_iter().zip(stored.verdicts) {
        let answer = match verdict {
            Ok((receipt, now)) => (status(now).as_u16(), Some(wire::receipt(&receipt)), None),
            Err(error) => {
                let problem = problems::store_result(&state, error);
                if problem.code().status() == 500 {
                    // The log then has its cause.
                    return Err(problem);
                }
                let problem = problem.to_problem(call.request_id.as_str());
                (problem.status, None, Some(problem))
            }
        };
        let (status, receipt, problem) = answer;
        answers.push(site_protocol::BatchedAnswer { command_id, status, receipt, problem });
    }
    let next = stored.next.map(|page| wire::page(page, environment)).transpose()?;
    json(StatusCode::OK, &site_protocol::BatchAnswer { results: answers, next })
}

/// Counts a result that is new.
fn count(environment: Environment, receipt: &Receipt, now: Stored) {
    if now == Stored::New {
        metrics::counter!(
            "results_stored_total",
            "environment" => environment.as_str(), "outcome" => receipt.outcome.as_str()
        )
        .increment(1);
    }
}

fn status(now: Stored) -> StatusCode {
    match now {
        Stored::New => StatusCode::CREATED,
        Stored::Same => StatusCode::OK,
    }
}

/// What the answer is to bring along, where it is asked for.
pub(crate) fn next(
    uri: &Uri,
    wrong: &mut WrongFields,
    limits: &Limits,
    fraction: f64,
) -> Option<NextRequest> {
    let mut query = Query::of(uri);
    let asked = query.has("next");
    let limit = query
        .optional("next", wrong, |text| request::number(text, 1, limits.page_commands))
        .unwrap_or(limits.page_commands);
    if !asked {
        // They would say nothing.
        for name in ["cancelRev", "wait"].into_iter().filter(|name| query.has(name)) {
            wrong.push(name, "needs the parameter next");
        }
    }
    let cancel_rev = request::cancel_rev(&mut query, wrong);
    let wait = request::wait(&mut query, wrong, limits, fraction);
    query.finish(wrong);
    asked.then_some(NextRequest { limit, bytes: limits.page_bytes, wait, cancel_rev })
}

/// Reads the items of a batch: each has an object of its own for what is wrong with it.
pub(crate) fn batch(
    object: &mut JsonObject<'_>,
    wrong: &mut WrongFields,
    most: u16,
) -> Option<Vec<NewResult>> {
    let raw = object.required_raw("results", wrong)?;
    let items: Option<Vec<&RawValue>> = serde_json::from_str(raw.get()).ok();
    let Some(items) = items.filter(|items| (1..=usize::from(most)).contains(&items.len())) else {
        wrong.push("results", format!("must be an array of 1 to {most} results"));
        return None;
    };
    let mut seen = HashSet::new();
    let mut results = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let part = format!("results[{index}]");
        let mut inner = WrongFields::new();
        let Ok(mut object) = JsonObject::parse(item.get().as_bytes()) else {
            wrong.push(&part, "must be an object");
            continue;
        };
        let command = object
            .required::<String>("commandId", &mut inner, "a text")
            .and_then(|id| inner.check("commandId", CommandId::parse(&id)));
        if command.as_ref().is_some_and(|command| !seen.insert(command.clone())) {
            inner.push("commandId", "is in the batch more than once");
        }
        let body = object.required_raw("result", &mut inner);
        object.finish(&mut inner);
        if let Some((command, body)) = command.zip(body) {
            let mut fields = WrongFields::new();
            match result(command, body.get().as_bytes(), &mut fields) {
                Ok(result) => results.extend(result),
                Err(problem) => inner.push("result", problem.detail()),
            }
            inner.nest("result", fields);
        }
        wrong.nest(&part, inner);
    }
    Some(results)
}

/// Checks the body of a result; what is stored are its exact bytes without outer white space.
pub(crate) fn result(
    command: CommandId,
    bytes: &[u8],
    wrong: &mut WrongFields,
) -> Result<Option<NewResult>, ProblemReply> {
    let mut object = JsonObject::parse(bytes)?;
    let outcome = object
        .required::<String>("outcome", wrong, "succeeded, failed or rejected")
        .and_then(|word| wrong.check("outcome", Outcome::parse(&word)));
    let detail = object.optional::<String>("detail", wrong, "a text");
    if detail.is_some_and(|detail| detail.len() > LONGEST_DETAIL) {
        wrong.push("detail", format!("has more than {LONGEST_DETAIL} bytes"));
    }
    let _any_json = object.optional_raw("output", wrong);
    let output = object
        .optional::<String>("privateOutput", wrong, "a digest")
        .and_then(|text| wrong.check("privateOutput", request::digest(&text)));
    object.finish(wrong);
    let malformed = |_| ProblemReply::new(Code::MalformedBody, "the body is not JSON in UTF-8");
    let text = std::str::from_utf8(bytes).map_err(malformed)?;
    let body = JsonText::parse(text)
        .map_err(|reason| ProblemReply::new(Code::MalformedBody, reason.to_string()))?;
    Ok(outcome.map(|outcome| NewResult { command, outcome, body, output }))
}
