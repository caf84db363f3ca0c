//! The execution routes: read an accepted Run, ask whether an Attempt of it may do something now, and
//! read its private output.

pub(crate) mod authorise;
pub(crate) mod entity_tags;
pub(crate) mod output;
pub(crate) mod places;
mod read;
mod wire;

use execution_core::RunId;
use service_kit::{Call, ProblemReply};
use site_protocol::Code;

use crate::{authority::Authority, problems, state::State};

pub(crate) use authorise::authorise;
pub(crate) use output::output;
pub(crate) use read::read;

/// What the listener knows of Runs.
fn authority(state: &State) -> Result<&Authority, ProblemReply> {
    let detail = "this listener serves no execution authority";
    state
        .authority
        .as_ref()
        .ok_or_else(|| ProblemReply::new(Code::ExecutionAuthorityDisabled, detail))
}

/// The Run that the path names. One of another form is nowhere.
fn run(call: &Call) -> Result<RunId, ProblemReply> {
    RunId::parse(call.params.get("runId")).map_err(|_| problems::no_such_run())
}
