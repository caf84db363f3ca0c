//! `PUT /v1/site/commands/{commandId}/result`.

use std::sync::Arc;

use http::StatusCode;
use service_kit::{
    Call, ProblemReply,
    body::read_json,
    fields::{JsonObject, Query, WrongFields},
    json,
    router::Answer,
};
use site_coordination::{CommandId, JsonText, NewResult, Outcome, Stored};
use site_protocol::Code;

use super::{request, wire};
use crate::{authenticate::Runtime, problems, state::State};

/// The longest `detail` of a result, in bytes.
const LONGEST_DETAIL: usize = 4096;

/// Stores the result of the command that is due.
pub(crate) async fn store_result(state: Arc<State>, caller: Runtime, call: Call) -> Answer {
    let mut wrong = WrongFields::new();
    let writer = request::writer(&call.head.headers, &mut wrong);
    let unknown = || ProblemReply::new(Code::NotFound, "the stream has no such command");
    let command = CommandId::parse(call.params.get("commandId")).map_err(|_| unknown())?;
    Query::of(&call.head.uri).finish(&mut wrong);
    let bytes = read_json(&call.head.headers, call.body, state.limits.json_body()).await?;
    let (outcome, body) = result(&bytes, &mut wrong)?;
    let (writer, outcome) = wrong.accept(writer.zip(outcome))?;

    let result = NewResult { command, outcome, body, output: None };
    let stored = state.commands.store_result(caller.environment, &writer, result).await;
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
    json(status, &wire::receipt(&receipt))
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
