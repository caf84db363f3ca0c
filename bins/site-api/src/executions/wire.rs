//! From what the contexts answer to what stands on the wire.

use chrono::{DateTime, Utc};
use execution_core::{
    Action, Attempt, AttemptNumber, AttemptState, NewRun, ReadRun, Repository, Run, RunState,
    authority::Authorised,
};
use serde_json::value::RawValue;
use service_kit::ProblemReply;

pub(super) fn execution(found: ReadRun) -> Result<site_protocol::Execution, ProblemReply> {
    let ReadRun { run, now } = found;
    let state = match run.state() {
        RunState::Accepted => site_protocol::RunState::Accepted,
        RunState::Cancelled => site_protocol::RunState::Cancelled,
    };
    let Run { accepted, accepted_at, cancelled_at, attempts } = run;
    let NewRun { id, project, member, place, deadline, repository, material } = accepted;
    let run = site_protocol::Run {
        run_id: id.as_str().to_owned(),
        project_id: project.as_str().to_owned(),
        member_id: member.as_str().to_owned(),
        environment: place.environment.as_str().to_owned(),
        state,
        accepted_at,
        deadline: deadline.time(),
        cancelled_at,
        repository: repository_of(&repository),
        attempts: attempts.iter().map(attempt).collect(),
        material: RawValue::from_string(material.into_string()).map_err(ProblemReply::internal)?,
    };
    Ok(site_protocol::Execution { run, server_time: now })
}

fn repository_of(repository: &Repository) -> site_protocol::RunRepository {
    site_protocol::RunRepository {
        instance: repository.instance.as_str().to_owned(),
        project_id: repository.project.get(),
        path: repository.path.as_str().to_owned(),
        reference: repository.reference.as_str().to_owned(),
        commit: repository.commit.as_str().to_owned(),
    }
}

fn attempt(attempt: &Attempt) -> site_protocol::Attempt {
    site_protocol::Attempt {
        number: number(attempt.number),
        state: match attempt.state() {
            AttemptState::Submitted => site_protocol::AttemptState::Submitted,
            AttemptState::Final => site_protocol::AttemptState::Final,
        },
        submitted_at: attempt.submitted_at,
        final_at: attempt.final_at,
    }
}

/// What was authorised at a time.
pub(super) fn authorisation(
    authorised: &Authorised,
    now: DateTime<Utc>,
) -> Result<site_protocol::Authorisation, ProblemReply> {
    let action = match authorised.action() {
        Action::Execute => site_protocol::Action::Execute,
        action @ (Action::StageIn | Action::StageOut) => {
            let reason = format!("{} is not decided by this route", action.as_str());
            return Err(ProblemReply::internal(reason));
        }
    };
    Ok(site_protocol::Authorisation {
        run_id: authorised.run().as_str().to_owned(),
        attempt: number(authorised.attempt()),
        action,
        server_time: now,
    })
}

fn number(number: AttemptNumber) -> u32 {
    number.get().unsigned_abs()
}
