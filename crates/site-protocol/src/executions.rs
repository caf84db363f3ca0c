//! Bodies of the execution routes.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// The answer to `GET /v1/site/executions/{runId}`. The header `ETag` is another one as soon as
/// anything of the Run is; the time is no part of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// The Run.
    #[serde(deserialize_with = "crate::object::one")]
    pub run: Run,
    /// The database's time at the read: what its deadline is compared with.
    pub server_time: DateTime<Utc>,
}

/// An accepted Run as it is now.
///
/// `Debug` tells the size of the material and not the material, which can be private.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The Run.
    pub run_id: String,
    /// The Project that it belongs to.
    pub project_id: String,
    /// The member whose Run it is, and whose rights it has.
    pub member_id: String,
    /// Where at the Site it executes: `k8s` or `slurm`.
    pub environment: String,
    /// What has become of it.
    pub state: RunState,
    /// When it was accepted.
    pub accepted_at: DateTime<Utc>,
    /// From when on it may not execute any more.
    pub deadline: DateTime<Utc>,
    /// When it was cancelled, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cancelled_at: Option<DateTime<Utc>>,
    /// The repository that it works on, as it was saved when the Run was accepted.
    #[serde(deserialize_with = "crate::object::one")]
    pub repository: RunRepository,
    /// Its Attempts in order: the first is number 1, and none is left out.
    #[serde(deserialize_with = "crate::object::list")]
    pub attempts: Vec<Attempt>,
    /// What it is to do: the exact JSON text that was accepted.
    #[schema(value_type = serde_json::Value)]
    pub material: Box<RawValue>,
}

/// The repository of a Run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunRepository {
    /// The provider's installation.
    pub instance: String,
    /// The project's number there.
    pub project_id: i64,
    /// The project's path when the Run was accepted.
    pub path: String,
    /// The ref that was asked for.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit that it stood for.
    pub commit: String,
}

/// A try to execute a Run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Its place among the Attempts of the Run, from 1.
    pub number: u32,
    /// What has become of it.
    pub state: AttemptState,
    /// When it was submitted.
    pub submitted_at: DateTime<Utc>,
    /// Since when it is over, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub final_at: Option<DateTime<Utc>>,
}

/// What has become of a Run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It may be executed, as far as that can be told without asking.
    Accepted,
    /// It may do nothing any more.
    Cancelled,
}

/// What has become of an Attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttemptState {
    /// It is under way, or will be.
    Submitted,
    /// It is over.
    Final,
}

/// The body of `POST /v1/site/executions/{runId}/authorisations`: may this Attempt do this now?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthorisationRequest {
    /// The number of the Attempt, 1 to 1,000.
    #[schema(minimum = 1, maximum = 1000)]
    pub attempt: u32,
    /// What it wants to do.
    pub action: Action,
}

/// What an Attempt may be authorised to do by this route. What it does at a repository is decided
/// with each grant for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Execute the work.
    Execute,
}

/// The answer to it where it is a yes: the Attempt may do the action now. It is good for the action
/// that follows at once, and for no later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authorisation {
    /// The Run.
    pub run_id: String,
    /// The Attempt.
    pub attempt: u32,
    /// What it may do.
    pub action: Action,
    /// The database's time at which the Run was read: when it was authorised.
    pub server_time: DateTime<Utc>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("run_id", &self.run_id)
            .field("project_id", &self.project_id)
            .field("member_id", &self.member_id)
            .field("environment", &self.environment)
            .field("state", &self.state)
            .field("accepted_at", &self.accepted_at)
            .field("deadline", &self.deadline)
            .field("cancelled_at", &self.cancelled_at)
            .field("repository", &self.repository)
            .field("attempts", &self.attempts)
            .field("material_bytes", &self.material.get().len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"run":{"runId":"run-7","projectId":"p-4","memberId":"m-17","environment":"slurm","state":"accepted","acceptedAt":"2030-01-01T00:00:00Z","deadline":"2031-01-01T00:00:00Z","repository":{"instance":"gitlab","projectId":4711,"path":"a/b","ref":"main","commit":"0123"},"attempts":[{"number":1,"state":"final","submittedAt":"2030-01-01T00:00:00Z","finalAt":"2030-01-02T00:00:00Z"}],"material":{"private":  1.50}},"serverTime":"2030-01-03T00:00:00Z"}"#;

    #[test]
    fn material_stays_as_it_is_to_the_byte() {
        let read: Execution = serde_json::from_str(TEXT).unwrap();
        assert_eq!(read.run.material.get(), r#"{"private":  1.50}"#);
        assert_eq!(serde_json::to_string(&read).unwrap(), TEXT);
    }

    #[test]
    fn the_debug_form_leaves_material_out() {
        let read: Execution = serde_json::from_str(TEXT).unwrap();
        let told = format!("{read:?}");
        assert!(told.contains("run-7") && told.contains("material_bytes: 18"), "{told}");
        assert!(!told.contains("private"), "{told}");
    }

    #[test]
    fn no_list_is_taken_for_a_part_of_it() {
        let attempt = r#"{"number":1,"state":"final","submittedAt":"2030-01-01T00:00:00Z","finalAt":"2030-01-02T00:00:00Z"}"#;
        let list = r#"[1,"final","2030-01-01T00:00:00Z","2030-01-02T00:00:00Z"]"#;
        assert!(serde_json::from_str::<Attempt>(list).is_ok(), "a derived reader takes it");
        let repository =
            r#"{"instance":"gitlab","projectId":4711,"path":"a/b","ref":"main","commit":"0123"}"#;
        for (object, list) in
            [(attempt, list), (repository, r#"["gitlab",4711,"a/b","main","0123"]"#)]
        {
            assert!(TEXT.contains(object), "{object}");
            let text = TEXT.replace(object, list);
            assert!(serde_json::from_str::<Execution>(&text).is_err(), "{text}");
        }
        let run = TEXT.find(r#"{"runId""#).unwrap()..TEXT.find(r#","serverTime""#).unwrap();
        let run = serde_json::from_str::<Run>(&TEXT[run]).unwrap();
        let list = serde_json::json!([
            run.run_id,
            run.project_id,
            run.member_id,
            run.environment,
            run.state,
            run.accepted_at,
            run.deadline,
            run.cancelled_at,
            run.repository,
            run.attempts,
            run.material,
        ]);
        assert!(serde_json::from_value::<Run>(list.clone()).is_ok(), "a derived reader takes it");
        let text = serde_json::json!({ "run": list, "serverTime": "2030-01-03T00:00:00Z" });
        assert!(serde_json::from_value::<Execution>(text).is_err());
    }
}
