//! `POST /v1/site/executions/{runId}/authorisations`.

use std::sync::Arc;

use beto::Decision;
use execution_core::{
    Action, AttemptNumber, ReadRun,
    authority::{Answer as Told, Request, before_asking},
};
use http::StatusCode;
use service_kit::{
    Call, ProblemReply,
    body::read_json,
    fields::{JsonObject, Query, WrongFields},
    json,
    router::Answer,
};

use super::wire;
use crate::{authenticate::Runtime, problems, state::State};

/// Says whether an Attempt may do something now. Everything is read anew and Beto is asked last, once
/// and only where nothing else is against it; nothing of the answer is kept.
pub(crate) async fn authorise(state: Arc<State>, caller: Runtime, call: Call) -> Answer {
    let authority = super::authority(&state)?;
    let run = super::run(&call)?;
    let mut wrong = WrongFields::new();
    Query::of(&call.head.uri).finish(&mut wrong);
    let bytes = read_json(&call.head.headers, call.body, state.limits.json_body()).await?;
    let (attempt, action) = asked(&bytes, wrong)?;

    let request = Request { place: authority.place(caller.environment), run, attempt, action };
    let found = authority.run(&state, &request.place, &request.run).await?;
    let ReadRun { run, now } = found.ok_or_else(problems::no_such_run)?;
    let binding = authority.binding(&state, &run.accepted.member).await?;
    let question = before_asking(&request, Some(&run), binding.as_ref(), now);
    let question = question.map_err(problems::refusal)?;
    let asked = authority.ask(&question).await;
    let told = match &asked {
        Ok(Decision::Allow) => Told::Allowed,
        Ok(Decision::Deny) => Told::Denied,
        Err(_) => Told::CouldNotAsk,
    };
    let authorised = question.decide(told).map_err(|refusal| match asked {
        Ok(_) => problems::refusal(refusal),
        Err(trouble) => problems::refusal(refusal).because(trouble),
    })?;
    tracing::info!(
        run.id = authorised.run().as_str(),
        run.attempt = authorised.attempt().get(),
        run.action = authorised.action().as_str(),
        "execution.authorised"
    );
    json(StatusCode::OK, &wire::authorisation(&authorised, now)?)
}

/// What an Attempt wants to do, by a body.
pub(crate) fn asked(
    body: &[u8],
    mut wrong: WrongFields,
) -> Result<(AttemptNumber, Action), ProblemReply> {
    let mut object = JsonObject::parse(body)?;
    // The text of a JSON number that is an Attempt's has one spelling.
    let attempt = object
        .required_raw("attempt", &mut wrong)
        .and_then(|number| wrong.check("attempt", AttemptNumber::parse(number.get())));
    let action = object
        .required::<String>("action", &mut wrong, "a text")
        .and_then(|word| wrong.check("action", action(&word)));
    object.finish(&mut wrong);
    wrong.accept(attempt.zip(action))
}

/// What is decided here. What an Attempt does at a repository needs a permission that another caller
/// asks for, with each grant for one.
fn action(word: &str) -> Result<Action, &'static str> {
    match Action::parse(word) {
        Ok(Action::Execute) => Ok(Action::Execute),
        Ok(Action::StageIn | Action::StageOut) => {
            Err("must be execute: what is done at a repository is decided with its grant")
        }
        Err(_) => Err("must be execute"),
    }
}
