//! Who is calling: from the request's head to a caller of this Site, or the refusal.
//!
//! The order is fixed: the credential, then the Site (before any storage is read), then the right.

use std::{fmt, sync::Arc};

use callers::{
    Grant, Jwt, NativeBearer, Presented, Principal, ServiceAccountToken, SubjectGrant,
    login::MemberName, presented,
};
use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::Body;
use service_kit::{AnswerBody, BrokenOff, ProblemReply, Response, router::Answer};
use site_coordination::Environment;
use site_protocol::Code;

use crate::{
    grants::NotGranted,
    login::NotLoggedIn,
    service_accounts::{Identified, NotIdentified},
    ssh_access::SshAccess,
    state::State,
};

/// A Runtime of this Site, with the stream that its grant names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runtime {
    /// The environment of its stream.
    pub(crate) environment: Environment,
}

/// Who may read what was accepted of this Site: a Runtime or an Admission, with the environment that
/// its grant names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// The environment whose Runs it may read.
    pub(crate) environment: Environment,
}

/// The SSH agent of this Site, with what it reads and acknowledges.
pub(crate) struct SshAgent {
    /// The keys that are in force at the Site.
    pub(crate) access: SshAccess,
}

/// What a caller was let in by, to be looked at again while its request is under way.
#[derive(Debug)]
pub(crate) enum Credential {
    /// A native bearer, by its grant.
    Native {
        /// The bearer.
        bearer: NativeBearer,
        /// What it was granted when the request began.
        grant: Grant,
    },
    /// The token of a ServiceAccount, by a review.
    ServiceAccount {
        /// The token.
        token: ServiceAccountToken,
        /// Whose it was when the request began.
        identified: Identified,
    },
}

/// Takes a caller that may pull commands and store results.
pub(crate) async fn runtime(
    state: &State,
    headers: &HeaderMap,
) -> Result<(Runtime, Credential), ProblemReply> {
    match presented(headers).map_err(ProblemReply::unauthenticated)? {
        Presented::NativeBearer(bearer) => native_runtime(state, bearer),
        Presented::Jwt(jwt) => account_runtime(state, of_cluster(state, jwt)?).await,
        _ => Err(another_form()),
    }
}

/// A member or operator who logged in. What they may do is asked of Beto.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// What the login issuer calls them.
    pub(crate) name: MemberName,
    /// When their access token expires.
    pub(crate) expires_at: DateTime<Utc>,
}

/// Takes a caller who logged in: an access token of the login issuer for this API alone. Other kinds
/// of credential are not looked up. Neither is the Site: a member is of none.
pub(crate) async fn member(state: &State, headers: &HeaderMap) -> Result<Member, ProblemReply> {
    let Presented::Jwt(token) = presented(headers).map_err(ProblemReply::unauthenticated)? else {
        return Err(another_form());
    };
    let login = state.login.verify(&token).await.map_err(not_logged_in)?;
    is_calling(&login.member);
    Ok(Member { name: login.member, expires_at: login.expires_at })
}

/// Takes a caller that may read accepted Runs.
pub(crate) async fn reader(
    state: &State,
    headers: &HeaderMap,
) -> Result<(Reader, Credential), ProblemReply> {
    match presented(headers).map_err(ProblemReply::unauthenticated)? {
        Presented::NativeBearer(bearer) => {
            let (Runtime { environment }, credential) = native_runtime(state, bearer)?;
            Ok((Reader { environment }, credential))
        }
        Presented::Jwt(jwt) => {
            let (grant, credential) = account(state, of_cluster(state, jwt)?).await?;
            let (SubjectGrant::Runtime(environment) | SubjectGrant::Admission(environment)) = grant;
            Ok((Reader { environment: stream(environment) }, credential))
        }
        _ => Err(another_form()),
    }
}

/// What the cluster may be asked about. A member's token is none of its business.
fn of_cluster(state: &State, jwt: Jwt) -> Result<ServiceAccountToken, ProblemReply> {
    if state.login.is_named_by(&jwt) {
        return Err(another_form());
    }
    ServiceAccountToken::of(jwt).ok_or_else(another_form)
}

/// Takes the SSH agent of this Site: a native bearer of its scope, and no other kind of credential.
pub(crate) fn ssh_agent(
    state: &State,
    headers: &HeaderMap,
) -> Result<(SshAgent, Credential), ProblemReply> {
    let Presented::NativeBearer(bearer) =
        presented(headers).map_err(ProblemReply::unauthenticated)?
    else {
        return Err(another_form());
    };
    let grant = native(state, &bearer)?;
    let Principal::SshAccess { .. } = grant.principal() else {
        return Err(ProblemReply::new(Code::Forbidden, "the bearer is not for SSH access"));
    };
    // The routes are there only where it is.
    let access = state.ssh_access.clone();
    let access = access.ok_or_else(|| ProblemReply::internal("there is no SSH access"))?;
    Ok((SshAgent { access }, Credential::Native { bearer, grant }))
}

/// The grant of a native bearer of this Site.
fn native(state: &State, bearer: &NativeBearer) -> Result<Grant, ProblemReply> {
    let grant = state.grants.authenticate(bearer).map_err(not_granted)?;
    is_calling(&grant.principal());
    if grant.principal().site().as_str() != state.site.as_str() {
        return Err(ProblemReply::new(
            Code::SiteMismatch,
            "the bearer is of another Site than this listener",
        ));
    }
    Ok(grant)
}

fn native_runtime(
    state: &State,
    bearer: NativeBearer,
) -> Result<(Runtime, Credential), ProblemReply> {
    let grant = native(state, &bearer)?;
    let Principal::Commands { environment, .. } = grant.principal() else {
        return Err(ProblemReply::new(Code::Forbidden, "the bearer is not for commands"));
    };
    let environment = stream(*environment);
    Ok((Runtime { environment }, Credential::Native { bearer, grant }))
}

async fn account_runtime(
    state: &State,
    token: ServiceAccountToken,
) -> Result<(Runtime, Credential), ProblemReply> {
    let (grant, credential) = account(state, token).await?;
    let SubjectGrant::Runtime(environment) = grant else {
        let detail = "an admission account reads accepted Runs and may do nothing else";
        return Err(ProblemReply::new(Code::Forbidden, detail));
    };
    let environment = stream(environment);
    Ok((Runtime { environment }, credential))
}

/// Who is known to the cluster of this listener is of its Site.
async fn account(
    state: &State,
    token: ServiceAccountToken,
) -> Result<(SubjectGrant, Credential), ProblemReply> {
    let identified = state.service_accounts.identify(&token).await.map_err(not_identified)?;
    is_calling(identified.account());
    Ok((identified.grant(), Credential::ServiceAccount { token, identified }))
}

/// Gives the answer of a request only if its caller may still have it then. A request that waits, or
/// whose body is slow to come, ends as soon as the caller is no longer let in: nothing is delivered on
/// what was revoked, has expired or was deleted. What such a request had begun to store may be
/// stored; the caller does not learn it.
pub(crate) async fn while_granted(
    state: &State,
    credential: &Credential,
    answer: impl Future<Output = Answer>,
) -> Answer {
    let ended = async {
        match credential {
            Credential::Native { bearer, grant } => {
                not_granted(state.grants.until_ended(bearer, grant).await)
            }
            Credential::ServiceAccount { token, identified } => {
                not_identified(state.service_accounts.until_ended(token, identified).await)
            }
        }
    };
    let answer = tokio::select! {
        biased;
        refusal = ended => return Err(refusal),
        answer = answer => answer,
    };
    match credential {
        Credential::Native { bearer, grant } => {
            state.grants.confirm(bearer, grant).map_err(not_granted)?;
        }
        Credential::ServiceAccount { token, identified } => {
            let confirmed = state.service_accounts.confirm(token, identified).await;
            confirmed.map_err(not_identified)?;
        }
    }
    answer
}

/// Breaks the body of an answer off that is made part by part, of a length that nobody knows yet, as
/// soon as the bearer of its caller is no longer let in.
pub(crate) fn parts_while_granted(
    state: Arc<State>,
    credential: Credential,
    answer: Response,
) -> Response {
    let Credential::Native { bearer, grant } = credential else { return answer };
    if answer.body().size_hint().exact().is_some() {
        return answer;
    }
    answer.map(|body| {
        let parts = body.into_data_stream();
        AnswerBody::unmeasured(parts.map(move |part| {
            if state.grants.confirm(&bearer, &grant).is_err() {
                return Err(BrokenOff::because("the caller is no longer let in"));
            }
            part
        }))
    })
}

/// Notes for the log who calls.
fn is_calling(who: &dyn fmt::Display) {
    tracing::Span::current().record("caller.principal", tracing::field::display(who));
}

/// Contexts have an environment of their own; see docs/decisions/0014-context-types-are-its-own.md.
fn stream(environment: callers::Environment) -> Environment {
    match environment {
        callers::Environment::K8s => Environment::K8s,
        callers::Environment::Slurm => Environment::Slurm,
    }
}

fn another_form() -> ProblemReply {
    ProblemReply::unauthenticated("a form that this route does not take")
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

fn not_identified(reason: NotIdentified) -> ProblemReply {
    match reason {
        NotIdentified::NotTaken => another_form(),
        NotIdentified::Refused(reason) => ProblemReply::unauthenticated(reason),
        NotIdentified::NotGranted(account) => {
            ProblemReply::unauthenticated(format!("{account} is granted nothing here"))
        }
        NotIdentified::Changed => {
            ProblemReply::unauthenticated("the token is another's than when the request began")
        }
        NotIdentified::Unavailable(trouble) => ProblemReply::new(
            Code::TokenReviewUnavailable,
            "tokens of ServiceAccounts can't be reviewed at the moment",
        )
        .because(trouble),
        NotIdentified::Busy => {
            ProblemReply::new(Code::Overloaded, "too many tokens are under review")
        }
    }
}

fn not_logged_in(reason: NotLoggedIn) -> ProblemReply {
    match reason {
        NotLoggedIn::NotTaken => another_form(),
        NotLoggedIn::Refused(reason) => ProblemReply::unauthenticated(reason),
        NotLoggedIn::Unavailable(trouble) => ProblemReply::new(
            Code::LoginUnavailable,
            "access tokens can't be verified at the moment",
        )
        .because(trouble),
        NotLoggedIn::Busy => {
            ProblemReply::new(Code::Overloaded, "too many tokens wait for the login issuer's keys")
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
