//! `POST /v1/site/commands/sessions`.

use std::sync::Arc;

use http::StatusCode;
use service_kit::{
    Call, ProblemReply,
    body::read_json,
    fields::{JsonObject, Query, WrongFields},
    json,
    router::Answer,
};
use site_coordination::{Generation, Opened, SessionId};

use super::wire;
use crate::{authenticate::Runtime, problems, state::State};

/// Takes the caller's stream over for a Runtime that starts.
pub(crate) async fn open_session(state: Arc<State>, caller: Runtime, call: Call) -> Answer {
    let mut wrong = WrongFields::new();
    Query::of(&call.head.uri).finish(&mut wrong);
    let bytes = read_json(&call.head.headers, call.body, state.limits.json_body()).await?;
    let (session, expected) = asked(&bytes, wrong)?;

    let opened = state.commands.open_session(caller.environment, session, expected).await;
    let (session, now) = opened.map_err(|error| problems::open_session(&state, error))?;
    let status = match now {
        Opened::New => {
            let environment = caller.environment.as_str();
            metrics::counter!("sessions_opened_total", "environment" => environment).increment(1);
            tracing::info!(
                session.id = session.session_id.as_str(),
                session.generation = session.generation.get(),
                stream.environment = environment,
                "session.opened"
            );
            StatusCode::CREATED
        }
        Opened::Same => StatusCode::OK,
    };
    json(status, &wire::session(&session))
}

/// The session that a body wants to open, and the generation that it expects.
pub(crate) fn asked(
    body: &[u8],
    mut wrong: WrongFields,
) -> Result<(SessionId, Generation), ProblemReply> {
    let mut object = JsonObject::parse(body)?;
    let session = object
        .required::<String>("sessionId", &mut wrong, "a text")
        .and_then(|id| wrong.check("sessionId", SessionId::parse(&id)));
    // The text of a JSON number that is a generation has one spelling.
    let expected = object
        .required_raw("expectedGeneration", &mut wrong)
        .and_then(|number| wrong.check("expectedGeneration", Generation::parse(number.get())));
    object.finish(&mut wrong);
    wrong.accept(session.zip(expected))
}
