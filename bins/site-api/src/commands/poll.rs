//! `GET /v1/site/commands/`.

use std::sync::Arc;

use http::{StatusCode, request::Parts};
use service_kit::{
    Call, ProblemReply,
    fields::{Query, WrongFields},
    json,
    router::Answer,
};
use site_coordination::{PollRequest, Seq};

use super::{request, wire};
use crate::{authenticate::Runtime, limits::Limits, problems, state::State};

/// Brings the commands after a place, and the cancels that the caller does not know.
pub(crate) async fn pull(state: Arc<State>, caller: Runtime, call: Call) -> Answer {
    let request = asked(&call.head, &state.limits, state.fraction())?;
    let draining = call.shutdown.clone();
    let polled = state
        .commands
        .poll(caller.environment, request, async move { draining.draining().await })
        .await;
    let page = polled.map_err(|error| problems::poll(&state, error))?;
    json(StatusCode::OK, &wire::page(page, caller.environment)?)
}

/// What a request asks for. Its wait is shortened by `fraction`, see [`request::wait`].
pub(crate) fn asked(
    head: &Parts,
    limits: &Limits,
    fraction: f64,
) -> Result<PollRequest, ProblemReply> {
    let mut wrong = WrongFields::new();
    let writer = request::writer(&head.headers, &mut wrong);
    let mut query = Query::of(&head.uri);
    let after = query.optional("after", &mut wrong, Seq::parse).unwrap_or(Seq::ZERO);
    let after_digest = query.optional("afterDigest", &mut wrong, request::digest);
    let limit = query
        .optional("limit", &mut wrong, |text| request::number(text, 0, limits.page_commands))
        .unwrap_or(limits.page_commands);
    let cancel_rev = request::cancel_rev(&mut query, &mut wrong);
    let wait = request::wait(&mut query, &mut wrong, limits, fraction);
    query.finish(&mut wrong);
    let writer = wrong.accept(writer)?;
    let bytes = limits.page_bytes;
    Ok(PollRequest { writer, after, after_digest, cancel_rev, limit, bytes, wait })
}
