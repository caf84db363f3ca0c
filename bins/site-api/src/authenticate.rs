//! Who is calling: from the request's head to a caller of this Site, or the refusal.
//!
//! The order is fixed: the credential, then the Site (before any storage is read), then the right.

use callers::{Presented, Principal, presented};
use http::HeaderMap;
use service_kit::ProblemReply;
use site_coordination::Environment;
use site_protocol::Code;

use crate::state::State;

/// A Runtime of this Site, with the stream that its grant names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtime {
    /// The environment of its stream.
    pub(crate) environment: Environment,
}

/// Takes a caller that may pull commands and store results.
pub(crate) fn runtime(state: &State, headers: &HeaderMap) -> Result<Runtime, ProblemReply> {
    let bearer = match presented(headers).map_err(ProblemReply::unauthenticated)? {
        Presented::NativeBearer(bearer) => bearer,
        _ => return Err(ProblemReply::unauthenticated("a form that this route does not take")),
    };
    let Some(grants) = &state.grants else {
        return Err(ProblemReply::new(
            Code::BearersUnavailable,
            "native bearers can't be checked at the moment",
        ));
    };
    let grant =
        grants.authenticate(&bearer, (state.clock)()).map_err(ProblemReply::unauthenticated)?;
    tracing::Span::current()
        .record("caller.principal", tracing::field::display(&grant.principal()));
    if grant.principal().site().as_str() != state.site.as_str() {
        return Err(ProblemReply::new(
            Code::SiteMismatch,
            "the bearer is of another Site than this listener",
        ));
    }
    match grant.principal() {
        Principal::Commands { environment, .. } => Ok(Runtime {
            environment: match environment {
                callers::Environment::K8s => Environment::K8s,
                callers::Environment::Slurm => Environment::Slurm,
            },
        }),
        Principal::SshAccess { .. } => {
            Err(ProblemReply::new(Code::Forbidden, "the bearer is not for commands"))
        }
    }
}

#[cfg(test)]
mod tests {
    /// Both crates have a Site of their own; see docs/decisions/0014-context-types-are-its-own.md.
    #[test]
    fn callers_and_streams_agree_on_what_a_site_is() {
        let long = "a".repeat(64);
        let too_long = "a".repeat(65);
        let mut texts = vec!["", "gpu-lab", "A.b_c-9", "é", "a b", "a/b", "a\n", &long, &too_long];
        let ascii: Vec<String> = (0..=127u8).map(char::from).map(String::from).collect();
        let second: Vec<String> = ascii.iter().map(|one| format!("a{one}")).collect();
        texts.extend(ascii.iter().chain(&second).map(String::as_str));
        for text in texts {
            let (caller, stream) =
                (callers::SiteId::parse(text), site_coordination::SiteId::parse(text));
            assert_eq!(caller.is_ok(), stream.is_ok(), "{text:?}");
        }
    }
}
