//! Every route of the Site API: method, pattern, who may call, handler.

use std::{pin::Pin, sync::Arc};

use http::Method;
use service_kit::{
    Call, Routes, healthz,
    router::{Answer, RouteError, Router},
};
use site_protocol::paths;

use crate::{
    authenticate::{self, Credential, Member, Reader, Runtime, SshAgent},
    commands, executions, ssh_access,
    state::State,
};

type Answered = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One line of the table.
struct Route {
    method: Method,
    pattern: &'static str,
    handler: Handler,
}

/// The kind of caller that a route takes, with what it then runs.
enum Handler {
    /// Anybody, at any load: a probe.
    Probe(fn(Call) -> Answered),
    /// A Runtime; see [`authenticate::runtime`].
    Runtime(fn(Arc<State>, Runtime, Call) -> Answered),
    /// The SSH agent; see [`authenticate::ssh_agent`].
    SshAgent(fn(Arc<State>, SshAgent, Call) -> Answered),
    /// A Runtime or an Admission; see [`authenticate::reader`].
    Reader(fn(Arc<State>, Reader, Call) -> Answered),
    /// A member who logged in; see [`authenticate::member`].
    Member(fn(Arc<State>, Member, Call) -> Answered),
}

/// The table.
const ROUTES: [Route; 9] = [
    Route {
        method: Method::GET,
        pattern: paths::COMMANDS,
        handler: Handler::Runtime(|state, caller, call| {
            Box::pin(commands::pull(state, caller, call))
        }),
    },
    Route {
        method: Method::POST,
        pattern: paths::COMMAND_SESSIONS,
        handler: Handler::Runtime(|state, caller, call| {
            Box::pin(commands::open_session(state, caller, call))
        }),
    },
    Route {
        method: Method::PUT,
        pattern: paths::COMMAND_RESULTS,
        handler: Handler::Runtime(|state, caller, call| {
            Box::pin(commands::store_results(state, caller, call))
        }),
    },
    Route {
        method: Method::PUT,
        pattern: paths::COMMAND_RESULT,
        handler: Handler::Runtime(|state, caller, call| {
            Box::pin(commands::store_result(state, caller, call))
        }),
    },
    Route {
        method: Method::PUT,
        pattern: paths::COMMAND_OUTPUT,
        handler: Handler::Runtime(|state, caller, call| {
            Box::pin(commands::store_output(state, caller, call))
        }),
    },
    Route {
        method: Method::GET,
        pattern: paths::EXECUTION,
        handler: Handler::Reader(|state, caller, call| {
            Box::pin(executions::read(state, caller, call))
        }),
    },
    Route {
        method: Method::POST,
        pattern: paths::EXECUTION_AUTHORISATIONS,
        handler: Handler::Runtime(|state, caller, call| {
            Box::pin(executions::authorise(state, caller, call))
        }),
    },
    Route {
        method: Method::GET,
        pattern: paths::EXECUTION_OUTPUT,
        handler: Handler::Member(|state, caller, call| {
            Box::pin(executions::output(state, caller, call))
        }),
    },
    Route {
        method: Method::GET,
        pattern: paths::HEALTHZ,
        handler: Handler::Probe(|call| Box::pin(healthz(call))),
    },
];

/// The routes of a listener that serves SSH access, besides those.
const SSH_ROUTES: [Route; 3] = [
    Route {
        method: Method::GET,
        pattern: paths::SSH_CHANGES,
        handler: Handler::SshAgent(|state, caller, call| {
            Box::pin(ssh_access::changes(state, caller, call))
        }),
    },
    Route {
        method: Method::GET,
        pattern: paths::SSH_SNAPSHOT,
        handler: Handler::SshAgent(|state, caller, call| {
            Box::pin(ssh_access::snapshot(state, caller, call))
        }),
    },
    Route {
        method: Method::PUT,
        pattern: paths::SSH_ACKNOWLEDGEMENT,
        handler: Handler::SshAgent(|state, caller, call| {
            Box::pin(ssh_access::acknowledge(state, caller, call))
        }),
    },
];

/// Builds the router over the table.
pub(crate) fn router(state: &Arc<State>) -> Result<Router, RouteError> {
    let mut routes = Routes::new();
    let more = state.ssh_access.is_some().then_some(SSH_ROUTES).into_iter().flatten();
    for Route { method, pattern, handler } in ROUTES.into_iter().chain(more) {
        let state = state.clone();
        routes = match handler {
            Handler::Probe(handler) => routes.probe(pattern, handler),
            Handler::Runtime(handler) => routes.route(method, pattern, move |call: Call| {
                let state = state.clone();
                async move {
                    let caller = authenticate::runtime(&state, &call.head.headers).await?;
                    answered(state, caller, call, handler).await
                }
            }),
            Handler::SshAgent(handler) => routes.route(method, pattern, move |call: Call| {
                let state = state.clone();
                async move {
                    let caller = authenticate::ssh_agent(&state, &call.head.headers)?;
                    answered(state, caller, call, handler).await
                }
            }),
            Handler::Reader(handler) => routes.route(method, pattern, move |call: Call| {
                let state = state.clone();
                async move {
                    let caller = authenticate::reader(&state, &call.head.headers).await?;
                    answered(state, caller, call, handler).await
                }
            }),
            Handler::Member(handler) => routes.route(method, pattern, move |call: Call| {
                let state = state.clone();
                async move {
                    let caller = authenticate::member(&state, &call.head.headers).await?;
                    call.vouch();
                    handler(state, caller, call).await
                }
            }),
        };
    }
    routes.build()
}

/// The answer to a caller that is let in, for as long as it is.
async fn answered<C>(
    state: Arc<State>,
    (caller, credential): (C, Credential),
    call: Call,
    handler: fn(Arc<State>, C, Call) -> Answered,
) -> Answer {
    call.vouch();
    let answer = handler(Arc::clone(&state), caller, call);
    let answer = authenticate::while_granted(&state, &credential, answer).await?;
    Ok(authenticate::parts_while_granted(state, credential, answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_routes_that_the_protocol_lists() {
        let served = |route: Route| (route.method.to_string(), route.pattern);
        let listed = |routes: &[(&str, &'static str)]| -> Vec<_> {
            routes.iter().map(|(method, path)| ((*method).to_owned(), *path)).collect()
        };
        assert_eq!(ROUTES.map(served).to_vec(), listed(paths::ALL));
        assert_eq!(SSH_ROUTES.map(served).to_vec(), listed(paths::SSH_ACCESS));
    }
}
