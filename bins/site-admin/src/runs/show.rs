//! `site-admin runs show`.

use std::fmt;

use chrono::{DateTime, Utc};
use clap::Args;
use execution_core::{NewRun, Registry, Repository, Run};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{RunArguments, unknown_run};
use crate::{Failure, commands::time, output::Format};

#[derive(Args)]
pub(crate) struct Show {
    #[command(flatten)]
    run: RunArguments,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Show,
    format: Format,
) -> Result<(), Failure> {
    let run = registry.show(&arguments.run.run_id).await?.ok_or_else(unknown_run)?;
    format.print(&Shown::of(run)?)
}

/// A Run with all that is known of it; its material is the exact text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    run_id: String,
    project_id: String,
    member_id: String,
    site: String,
    environment: &'static str,
    deadline: DateTime<Utc>,
    repository: ShownRepository,
    state: &'static str,
    accepted_at: DateTime<Utc>,
    cancelled_at: Option<DateTime<Utc>>,
    attempts: Vec<ShownAttempt>,
    fingerprint: String,
    material: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownRepository {
    instance: String,
    project_id: i64,
    path: String,
    r#ref: String,
    commit: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownAttempt {
    number: i32,
    state: &'static str,
    submitted_at: DateTime<Utc>,
    final_at: Option<DateTime<Utc>>,
}

impl Shown {
    /// # Errors
    ///
    /// Where the stored material is no JSON.
    fn of(run: Run) -> Result<Self, Failure> {
        let (fingerprint, state) = (run.fingerprint(), run.state().as_str());
        let attempts = run.attempts.iter().map(|attempt| ShownAttempt {
            number: attempt.number.get(),
            state: attempt.state().as_str(),
            submitted_at: attempt.submitted_at,
            final_at: attempt.final_at,
        });
        let attempts = attempts.collect();
        let NewRun { id, project, member, place, deadline, repository, material } = run.accepted;
        let material = RawValue::from_string(material.into_string());
        Ok(Self {
            run_id: id.as_str().to_owned(),
            project_id: project.as_str().to_owned(),
            member_id: member.as_str().to_owned(),
            site: place.site.as_str().to_owned(),
            environment: place.environment.as_str(),
            deadline: deadline.time(),
            repository: ShownRepository::of(&repository),
            state,
            accepted_at: run.accepted_at,
            cancelled_at: run.cancelled_at,
            attempts,
            fingerprint,
            material: material.map_err(|error| Failure::refused(&error))?,
        })
    }
}

impl ShownRepository {
    fn of(repository: &Repository) -> Self {
        Self {
            instance: repository.instance.as_str().to_owned(),
            project_id: repository.project.get(),
            path: repository.path.as_str().to_owned(),
            r#ref: repository.reference.as_str().to_owned(),
            commit: repository.commit.as_str().to_owned(),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "run         {}", self.run_id)?;
        writeln!(f, "project     {}", self.project_id)?;
        writeln!(f, "member      {}", self.member_id)?;
        writeln!(f, "place       {} {}", self.site, self.environment)?;
        writeln!(f, "deadline    {}", time(self.deadline))?;
        let ShownRepository { instance, project_id, path, r#ref, commit } = &self.repository;
        writeln!(f, "repository  {path}, {project_id} at {instance}")?;
        writeln!(f, "commit      {commit} of {}", r#ref)?;
        writeln!(f, "accepted    {}", time(self.accepted_at))?;
        if let Some(at) = self.cancelled_at {
            writeln!(f, "cancelled   {}", time(at))?;
        }
        for ShownAttempt { number, submitted_at, final_at, .. } in &self.attempts {
            write!(f, "attempt {number:<3} submitted {}", time(*submitted_at))?;
            final_at.iter().try_for_each(|at| write!(f, ", final {}", time(*at)))?;
            writeln!(f)?;
        }
        writeln!(f, "fingerprint {}", self.fingerprint)?;
        write!(f, "material\n{}", self.material.get())
    }
}
