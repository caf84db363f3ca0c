//! A case for each route: a request that is in order. The tests of refusals spoil it in their way,
//! so that each route is refused in each way.

use site_protocol::paths;

use super::Request;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Anybody.
    Anyone,
    /// A Runtime, with a native bearer of the scope `commands`.
    Runtime,
}

/// A route with what it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) method: &'static str,
    pub(crate) pattern: &'static str,
    pub(crate) caller: Caller,
    /// A body that is in order, where the route takes one.
    pub(crate) body: Option<&'static str>,
}

pub(crate) const CASES: [Case; 3] = [
    Case { method: "GET", pattern: paths::COMMANDS, caller: Caller::Runtime, body: None },
    Case {
        method: "PUT",
        pattern: paths::COMMAND_RESULT,
        caller: Caller::Runtime,
        body: Some(r#"{"outcome":"succeeded"}"#),
    },
    Case { method: "GET", pattern: paths::HEALTHZ, caller: Caller::Anyone, body: None },
];

impl Case {
    /// The cases of a kind of caller.
    pub(crate) fn of(caller: Caller) -> impl Iterator<Item = Self> {
        CASES.into_iter().filter(move |case| case.caller == caller)
    }

    /// The cases with a body.
    pub(crate) fn with_body() -> impl Iterator<Item = Self> {
        CASES.into_iter().filter(|case| case.body.is_some())
    }

    /// The path for a command.
    pub(crate) fn path(&self, command_id: &str) -> String {
        self.pattern.replace("{commandId}", command_id)
    }

    /// A request that is in order but for its bearer, which is missing.
    pub(crate) fn request(&self, command_id: &str) -> Request {
        let mut request = Request::new(self.method, &self.path(command_id));
        if self.caller == Caller::Runtime {
            request = request.header("runtime-generation", "1");
        }
        match self.body {
            Some(body) => request.header("content-type", "application/json").body(body.as_bytes()),
            None => request,
        }
    }
}

#[test]
fn every_route_has_a_case() {
    let cases = CASES.map(|case| (case.method, case.pattern));
    assert_eq!(cases.as_slice(), paths::ALL);
}
