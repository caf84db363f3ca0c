//! The paths of the Site API, as patterns for a router and as functions for a client.
//!
//! A trailing slash is part of a path: the edge publishes the prefix `/v1/site/commands/`, so the
//! read of commands is at exactly that path.

/// `GET`: reads the commands of the caller's stream.
pub const COMMANDS: &str = "/v1/site/commands/";

/// `PUT`: stores the result of one command.
pub const COMMAND_RESULT: &str = "/v1/site/commands/{commandId}/result";

/// `PUT`: stores the results of consecutive commands.
pub const COMMAND_RESULTS: &str = "/v1/site/commands/results";

/// `PUT`: stores a private output of the command whose result is due.
pub const COMMAND_OUTPUT: &str = "/v1/site/commands/{commandId}/outputs/{digest}";

/// `POST`: opens a session, which takes the caller's stream over.
pub const COMMAND_SESSIONS: &str = "/v1/site/commands/sessions";

/// `GET`: reads an accepted Run.
pub const EXECUTION: &str = "/v1/site/executions/{runId}";

/// `POST`: asks whether an Attempt of a Run may do something now.
pub const EXECUTION_AUTHORISATIONS: &str = "/v1/site/executions/{runId}/authorisations";

/// `GET`: reads the private output of a Run.
pub const EXECUTION_OUTPUT: &str = "/v1/site/executions/{runId}/output";

/// `GET`: reads the changes of what is in force at the Site.
pub const SSH_CHANGES: &str = "/v1/site/ssh-access/changes";

/// `GET`: reads everything that is in force at the Site.
pub const SSH_SNAPSHOT: &str = "/v1/site/ssh-access/snapshot";

/// `PUT`: says what the Site has made durable.
pub const SSH_ACKNOWLEDGEMENT: &str = "/v1/site/ssh-access/acknowledgement";

/// `GET`: says that the process serves. No caller is asked for.
pub const HEALTHZ: &str = "/healthz";

/// Every route that each listener serves: its method and its path. The server's router is held
/// against it by a test, and the tests of refusals have a case for each.
pub const ALL: &[(&str, &str)] = &[
    ("GET", COMMANDS),
    ("POST", COMMAND_SESSIONS),
    ("PUT", COMMAND_RESULTS),
    ("PUT", COMMAND_RESULT),
    ("PUT", COMMAND_OUTPUT),
    ("GET", EXECUTION),
    ("POST", EXECUTION_AUTHORISATIONS),
    ("GET", EXECUTION_OUTPUT),
    ("GET", HEALTHZ),
];

/// The routes of a listener that serves SSH access, besides [`ALL`]. At another one there is nothing
/// at these paths.
pub const SSH_ACCESS: &[(&str, &str)] =
    &[("GET", SSH_CHANGES), ("GET", SSH_SNAPSHOT), ("PUT", SSH_ACKNOWLEDGEMENT)];

/// The path at which the result of `command_id` is stored.
///
/// A command id holds only characters that need no escape in a path.
#[must_use]
pub fn command_result(command_id: &str) -> String {
    format!("/v1/site/commands/{command_id}/result")
}

/// The path at which a private output of `command_id` is stored.
#[must_use]
pub fn command_output(command_id: &str, digest: &crate::Digest) -> String {
    format!("/v1/site/commands/{command_id}/outputs/{digest}")
}

/// The path at which a Run is read.
///
/// A Run's id holds only characters that need no escape in a path.
#[must_use]
pub fn execution(run_id: &str) -> String {
    format!("/v1/site/executions/{run_id}")
}

/// The path at which an Attempt of a Run asks for authority.
#[must_use]
pub fn execution_authorisations(run_id: &str) -> String {
    format!("/v1/site/executions/{run_id}/authorisations")
}

/// The path at which the private output of a Run is read.
#[must_use]
pub fn execution_output(run_id: &str) -> String {
    format!("/v1/site/executions/{run_id}/output")
}
