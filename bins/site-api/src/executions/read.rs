//! `GET /v1/site/executions/{runId}`.

use std::sync::Arc;

use http::StatusCode;
use service_kit::{
    Call,
    fields::{Query, WrongFields},
    json,
    router::Answer,
};

use super::{entity_tags::EntityTag, wire};
use crate::{authenticate::Reader, problems, state::State};

/// Shows an accepted Run of the caller's Site and environment as it is now.
pub(crate) async fn read(state: Arc<State>, caller: Reader, call: Call) -> Answer {
    let authority = super::authority(&state)?;
    let run = super::run(&call)?;
    let mut wrong = WrongFields::new();
    Query::of(&call.head.uri).finish(&mut wrong);
    wrong.finish()?;

    let place = authority.place(caller.environment);
    let found = authority.run(&state, &place, &run).await?.ok_or_else(problems::no_such_run)?;
    let tag = EntityTag::weak(&found.run.fingerprint());
    if tag.is_in(&call.head.headers) {
        return tag.not_modified();
    }
    tag.on(json(StatusCode::OK, &wire::execution(found)?)?)
}
