//! What reads bytes from outside, for tests that have neither a process nor a database. No promise
//! is made to anybody else.

use execution_core::{Action, AttemptNumber};
use http::{Uri, request::Parts};
use service_kit::{
    ProblemReply, Settings, SettingsErrors,
    fields::{JsonObject, WrongFields},
};
use site_coordination::{CommandId, Generation, NewResult, NextRequest, PollRequest, SessionId};

use crate::{
    commands::{poll, results, sessions},
    executions::{authorise, entity_tags},
    limits::Limits,
    ssh_access::acknowledge,
};

/// What a poll asks for, under the limits of a process without settings.
///
/// # Errors
///
/// The answer.
pub fn poll(head: &Parts) -> Result<PollRequest, ProblemReply> {
    poll::asked(head, &defaults(), 0.0)
}

/// What the answer to a result is to bring along.
///
/// # Errors
///
/// The answer.
pub fn next(uri: &Uri) -> Result<Option<NextRequest>, ProblemReply> {
    let mut wrong = WrongFields::new();
    let next = results::next(uri, &mut wrong, &defaults(), 0.0);
    wrong.finish().map(|()| next)
}

/// The body of a result.
///
/// # Errors
///
/// The answer.
pub fn result(command: CommandId, body: &[u8]) -> Result<NewResult, ProblemReply> {
    let mut wrong = WrongFields::new();
    let result = results::result(command, body, &mut wrong)?;
    wrong.accept(result)
}

/// The body of a batch.
///
/// # Errors
///
/// The answer.
pub fn results(body: &[u8]) -> Result<Vec<NewResult>, ProblemReply> {
    let mut wrong = WrongFields::new();
    let mut object = JsonObject::parse(body)?;
    let results = results::batch(&mut object, &mut wrong, defaults().page_commands);
    object.finish(&mut wrong);
    wrong.accept(results)
}

/// The body that opens a session.
///
/// # Errors
///
/// The answer.
pub fn session(body: &[u8]) -> Result<(SessionId, Generation), ProblemReply> {
    sessions::asked(body, WrongFields::new())
}

/// What an Attempt of a Run wants to do.
///
/// # Errors
///
/// The answer.
pub fn authorisation(body: &[u8]) -> Result<(AttemptNumber, Action), ProblemReply> {
    authorise::asked(body, WrongFields::new())
}

/// What the agent of a Site says of its files.
///
/// # Errors
///
/// The answer.
pub fn acknowledgement(body: &[u8]) -> Result<ssh_access::Acknowledgement, ProblemReply> {
    acknowledge::told(body, WrongFields::new())
}

/// Whether a list of entity tags, as in `If-None-Match`, names one.
#[must_use]
pub fn names_tag(tag: &str, list: &str) -> bool {
    entity_tags::is_in(tag, list)
}

/// The settings that are bounds.
///
/// # Errors
///
/// Every mistake in them.
pub fn limits(mut settings: Settings) -> Result<(), SettingsErrors> {
    Limits::read(&mut settings);
    settings.finish()
}

fn defaults() -> Limits {
    Limits::read(&mut Settings::from_pairs([] as [(&str, &str); 0]))
}
