//! Who is calling: from the request's head to a caller of this Site, or the refusal.
//!
//! The order is fixed: the credential, then the Site (before any storage is read), then the right.

use callers::{Grant, NativeBearer, Presented, Principal, presented};
use http::HeaderMap;
use service_kit::{ProblemReply, router::Answer};
use site_coordination::Environment;
use site_protocol::Code;

use crate::{grants::NotGranted, state::State};

/// A Runtime of this Site, with the stream that its grant names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtime {
    /// The environment of its stream.
    pub(crate) environment: Environment,
}

/// What a caller was let in by, to be looked at again while its request is under way.
#[derive(Debug)]
pub(crate) struct Credential {
    bearer: NativeBearer,
    grant: Grant,
}

/// Takes a caller that may pull commands and store results.
pub(crate) fn runtime(
    state: &State,
    headers: &HeaderMap,
) -> Result<(Runtime, Credential), ProblemReply> {
    let bearer = match presented(headers).map_err(ProblemReply::unauthenticated)? {
        Presented::NativeBearer(bearer) => bearer,
        _ => return Err(ProblemReply::unauthenticated("a form that this route does not take")),
    };
    let grant = state.grants.authenticate(&bearer).map_err(not_granted)?;
    tracing::Span::current()
        .record("caller.principal", tracing::field::display(&grant.principal()));
    if grant.principal().site().as_str() != state.site.as_str() {
        return Err(ProblemReply::new(
            Code::SiteMismatch,
            "the bearer is of another Site than this listener",
        ));
    }
    let environment = match grant.principal() {
        Principal::Commands { environment: callers::Environment::K8s, .. } => Environment::K8s,
        Principal::Commands { environment: callers::Environment::Slurm, .. } => Environment::Slurm,
        Principal::SshAccess { .. } => {
            return Err(ProblemReply::new(Code::Forbidden, "the bearer is not for commands"));
        }
    };
    Ok((Runtime { environment }, Credential { bearer, grant }))
}

/// Gives the answer of a request only if its caller may still have it then. A request that waits, or
/// whose body is slow to come, ends as soon as the grant does: nothing is delivered on a revoked or
/// expired one. What such a request had begun to store may be stored; the caller does not learn it.
pub(crate) async fn while_granted(
    state: &State,
    credential: &Credential,
    answer: impl Future<Output = Answer>,
) -> Answer {
    let Credential { bearer, grant } = credential;
    let answer = tokio::select! {
        biased;
        reason = state.grants.until_ended(bearer, grant) => return Err(not_granted(reason)),
        answer = answer => answer,
    };
    state.grants.confirm(bearer, grant).map_err(not_granted)?;
    answer
}

fn not_granted(reason: NotGranted) -> ProblemReply {
    match reason {
        NotGranted::Unavailable => ProblemReply::new(
            Code::BearersUnavailable,
            "native bearers can't be checked at the moment",
        ),
        NotGranted::Refused(reason) => ProblemReply::unauthenticated(reason),
        NotGranted::Changed => {
            ProblemReply::unauthenticated("the grant is another one than when the request began")
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
