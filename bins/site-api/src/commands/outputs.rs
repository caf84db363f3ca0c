//! `PUT /v1/site/commands/{commandId}/outputs/{digest}`.

use std::sync::Arc;

use http::StatusCode;
use service_kit::{
    Call, ProblemReply,
    body::read_octets,
    fields::{Query, WrongFields},
    json,
    router::Answer,
};
use site_coordination::Stored;
use site_protocol::Code;

use super::{request, wire};
use crate::{authenticate::Runtime, problems, state::State};

/// Keeps a private output of the command that is due, before its result names it.
pub(crate) async fn store_output(state: Arc<State>, caller: Runtime, call: Call) -> Answer {
    let mut wrong = WrongFields::new();
    let writer = request::writer(&call.head.headers, &mut wrong);
    let command = request::command(&call)?;
    let digest = request::digest(call.params.get("digest"))
        .map_err(|error| ProblemReply::new(Code::NotFound, error.to_string()))?;
    Query::of(&call.head.uri).finish(&mut wrong);
    let writer = wrong.accept(writer)?;

    let Ok(slot) = Arc::clone(&state.uploads).try_acquire_owned() else {
        return Err(ProblemReply::new(Code::Overloaded, "too many outputs at once"));
    };
    let bytes = read_octets(&call.head.headers, call.body, state.limits.output_body()).await?;
    let environment = caller.environment;
    // The statement runs to its end also where the caller goes away, with the bytes: until then they
    // keep their place.
    let storing = {
        let state = Arc::clone(&state);
        async move {
            let bytes = bytes.into();
            let stored = state.commands.store_output(environment, &writer, &command, digest, bytes);
            let stored = stored.await;
            drop(slot);
            (command, stored)
        }
    };
    let (command, stored) = tokio::spawn(storing).await.map_err(ProblemReply::internal)?;
    let (output, now) = stored.map_err(|error| problems::store_output(&state, error))?;
    let status = match now {
        Stored::New => {
            metrics::counter!("outputs_stored_total", "environment" => environment.as_str())
                .increment(1);
            StatusCode::CREATED
        }
        Stored::Same => StatusCode::OK,
    };
    json(status, &wire::output(&command, &output))
}
