//! A case for each route: a request that is in order. The tests of refusals spoil it in their way,
//! so that each route is refused in each way.

use ring::digest::{SHA256, digest};
use site_protocol::paths;

use super::{Request, hex};

/// The id of no Run, so that nothing of one is in an answer.
const NO_RUN: &str = "run-of-nobody";

/// A private output.
const OUTPUT: &[u8] = br#"{"accuracy":0.93}"#;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Anybody.
    Anyone,
    /// A Runtime, with a native bearer of the scope `commands`.
    Runtime,
    /// A Runtime as well, or an Admission.
    Reader,
    /// A member who logged in.
    Member,
    /// The agent of the Site's keys, with a native bearer of the scope `ssh-access`.
    SshAgent,
}

/// A route with what it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) method: &'static str,
    pub(crate) pattern: &'static str,
    pub(crate) caller: Caller,
    /// Whether it takes a generation and a session.
    pub(crate) writer: bool,
    /// What it takes as its body, where it takes one.
    pub(crate) body: Option<Body>,
}

/// A body that is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// A session.
    Session,
    /// Results.
    Batch,
    /// A result.
    Result,
    /// A private output.
    Output,
    /// What an Attempt of a Run wants to do.
    Authorisation,
    /// What the agent of the Site's keys has made durable.
    Acknowledgement,
}

pub(crate) const CASES: [Case; 9] = [
    Case {
        method: "GET",
        pattern: paths::COMMANDS,
        caller: Caller::Runtime,
        writer: true,
        body: None,
    },
    Case {
        method: "POST",
        pattern: paths::COMMAND_SESSIONS,
        caller: Caller::Runtime,
        writer: false,
        body: Some(Body::Session),
    },
    Case {
        method: "PUT",
        pattern: paths::COMMAND_RESULTS,
        caller: Caller::Runtime,
        writer: true,
        body: Some(Body::Batch),
    },
    Case {
        method: "PUT",
        pattern: paths::COMMAND_RESULT,
        caller: Caller::Runtime,
        writer: true,
        body: Some(Body::Result),
    },
    Case {
        method: "PUT",
        pattern: paths::COMMAND_OUTPUT,
        caller: Caller::Runtime,
        writer: true,
        body: Some(Body::Output),
    },
    Case {
        method: "GET",
        pattern: paths::EXECUTION,
        caller: Caller::Reader,
        writer: false,
        body: None,
    },
    Case {
        method: "POST",
        pattern: paths::EXECUTION_AUTHORISATIONS,
        caller: Caller::Runtime,
        writer: false,
        body: Some(Body::Authorisation),
    },
    Case {
        method: "GET",
        pattern: paths::EXECUTION_OUTPUT,
        caller: Caller::Member,
        writer: false,
        body: None,
    },
    Case {
        method: "GET",
        pattern: paths::HEALTHZ,
        caller: Caller::Anyone,
        writer: false,
        body: None,
    },
];

/// Those of a listener that serves SSH access, besides these.
pub(crate) const SSH_CASES: [Case; 3] = [
    Case {
        method: "GET",
        pattern: paths::SSH_CHANGES,
        caller: Caller::SshAgent,
        writer: false,
        body: None,
    },
    Case {
        method: "GET",
        pattern: paths::SSH_SNAPSHOT,
        caller: Caller::SshAgent,
        writer: false,
        body: None,
    },
    Case {
        method: "PUT",
        pattern: paths::SSH_ACKNOWLEDGEMENT,
        caller: Caller::SshAgent,
        writer: false,
        body: Some(Body::Acknowledgement),
    },
];

impl Case {
    /// The cases of a kind of caller.
    pub(crate) fn of(caller: Caller) -> impl Iterator<Item = Self> {
        CASES.into_iter().filter(move |case| case.caller == caller)
    }

    /// The cases that ask who calls.
    pub(crate) fn authenticated() -> impl Iterator<Item = Self> {
        CASES.into_iter().filter(|case| case.caller != Caller::Anyone)
    }

    /// The cases of those whom a grant of the Site lets in.
    pub(crate) fn granted() -> impl Iterator<Item = Self> {
        let granted = [Caller::Runtime, Caller::Reader];
        CASES.into_iter().filter(move |case| granted.contains(&case.caller))
    }

    /// The cases of commands, which a Runtime's stream answers.
    pub(crate) fn of_commands() -> impl Iterator<Item = Self> {
        CASES.into_iter().filter(|case| case.pattern.starts_with(paths::COMMANDS))
    }

    /// Whether it is about a Run, and so about execution authority.
    pub(crate) fn is_of_executions(&self) -> bool {
        self.pattern.starts_with(paths::EXECUTION)
    }

    /// The cases with a body.
    pub(crate) fn with_body() -> impl Iterator<Item = Self> {
        CASES.into_iter().filter(|case| case.body.is_some())
    }

    /// The largest body that it takes; that of most routes where it takes none.
    pub(crate) fn most_bytes(&self) -> usize {
        if self.body == Some(Body::Output) { 16 * 1024 * 1024 } else { 1024 * 1024 }
    }

    /// The path for a command.
    pub(crate) fn path(&self, command_id: &str) -> String {
        let digest = hex(digest(&SHA256, OUTPUT).as_ref());
        self.pattern
            .replace("{commandId}", command_id)
            .replace("{digest}", &digest)
            .replace("{runId}", NO_RUN)
    }

    /// A request that is in order but for its bearer, which is missing. With the id of the command
    /// that is due it would change something.
    pub(crate) fn request(&self, command_id: &str) -> Request {
        self.request_with(command_id, "1")
    }

    /// One that is in order as well and that the stream refuses, with the id of a command that is
    /// not due: what is like it can't change anything. One that only reads is answered.
    pub(crate) fn idle_request(&self, command_id: &str) -> Request {
        self.request_with(command_id, "4000000007")
    }

    fn request_with(&self, command_id: &str, expected_generation: &str) -> Request {
        let mut request = Request::new(self.method, &self.path(command_id));
        if self.writer {
            request = request.header("runtime-generation", "1");
        }
        match self.body {
            Some(body) => {
                let bytes = body.bytes(command_id, expected_generation);
                request.header("content-type", body.content_type()).body(&bytes)
            }
            None => request,
        }
    }
}

impl Body {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Session
            | Self::Batch
            | Self::Result
            | Self::Authorisation
            | Self::Acknowledgement => "application/json",
            Self::Output => "application/octet-stream",
        }
    }

    fn bytes(self, command_id: &str, expected_generation: &str) -> Vec<u8> {
        match self {
            Self::Session => {
                let id = r#""sessionId":"session-of-a-case-0001""#;
                format!(r#"{{{id},"expectedGeneration":{expected_generation}}}"#).into()
            }
            Self::Batch => {
                let result = r#""result":{"outcome":"succeeded"}"#;
                format!(r#"{{"results":[{{"commandId":"{command_id}",{result}}}]}}"#).into()
            }
            Self::Result => br#"{"outcome":"succeeded"}"#.to_vec(),
            Self::Output => OUTPUT.to_vec(),
            Self::Authorisation => br#"{"attempt":1,"action":"execute"}"#.to_vec(),
            Self::Acknowledgement => {
                // The place before the first change, or one that is none of the feed.
                let (seq, digit) = match expected_generation {
                    "1" => ("0", "0"),
                    beyond => (beyond, "a"),
                };
                let digest = digit.repeat(64);
                let cursor = format!(r#""cursor":"{seq}.{digest}""#);
                format!(r#"{{{cursor},"chainDigest":"{digest}","failures":[]}}"#).into()
            }
        }
    }
}

#[test]
fn every_route_has_a_case() {
    let of = |case: Case| (case.method, case.pattern);
    assert_eq!(CASES.map(of).as_slice(), paths::ALL);
    assert_eq!(SSH_CASES.map(of).as_slice(), paths::SSH_ACCESS);
}
