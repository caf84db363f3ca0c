//! What each route takes and answers.

use crate::{Code, MAX_SSH_CHANGES, RUNTIME_GENERATION_HEADER, RUNTIME_SESSION_HEADER, paths};

/// One method of one path.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// A name for programs that are generated.
    pub id: &'static str,
    /// The method.
    pub method: &'static str,
    /// The path, as in [`crate::paths`].
    pub path: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Who may call it.
    pub caller: Caller,
    /// The named parts of the path.
    pub path_parts: &'static [Parameter],
    /// Headers beside those that HTTP has.
    pub headers: &'static [Parameter],
    /// Query parameters.
    pub query: &'static [Parameter],
    /// The body that it takes, where it takes one.
    pub body: Option<Body>,
    /// How it answers where it refuses nothing.
    pub answers: &'static [Success],
    /// Codes that it answers beside those that follow from its caller, its body and from being
    /// there at all; see [`Route::codes`].
    pub own_codes: &'static [Code],
}

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Anybody.
    Anyone,
    /// A Runtime of the Site.
    Runtime,
    /// The SSH agent of the Site, at a listener that serves SSH access.
    SshAgent,
    /// A Runtime of the Site, or an Admission.
    Reader,
    /// A member who logged in.
    Member,
}

/// A part of a path, a header or a query parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// What it may be.
    pub values: Values,
    /// What it says.
    pub meaning: &'static str,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A whole decimal number.
    Number {
        /// The least.
        least: u64,
        /// The greatest, where there is one but that of 63 bits.
        most: Option<u64>,
        /// What an absent one means.
        default: Option<u64>,
    },
    /// A text of this pattern.
    Text {
        /// A regular expression.
        pattern: &'static str,
    },
    /// 64 lower-case hexadecimal characters.
    Digest,
    /// A list of entity tags, or `*`. A route that takes it has an `ETag` where it refuses nothing.
    EntityTags,
}

/// What a route takes as its body.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// JSON of a wire type.
    Json {
        /// The type's name.
        schema: &'static str,
    },
    /// Any bytes.
    Bytes,
}

/// An answer that is no refusal.
#[derive(Clone, Copy, Debug)]
pub struct Success {
    /// Its status.
    pub status: u16,
    /// How it is written.
    pub form: Form,
    /// The names of the wire types that it can be; none for an object that nobody reads.
    pub schemas: &'static [&'static str],
    /// When it is given.
    pub meaning: &'static str,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON value.
    Json,
    /// JSON lines, each one of the wire types.
    JsonLines,
    /// Any bytes.
    Octets,
    /// Without a body.
    Nothing,
}

impl Route {
    /// Every code that the route can answer, in the order of their status.
    pub fn codes(&self) -> impl Iterator<Item = Code> {
        let caller = match self.caller {
            Caller::Anyone => OF_EVERY_ROUTE,
            Caller::Runtime | Caller::Reader => OF_RUNTIMES,
            Caller::Member => OF_MEMBERS,
            Caller::SshAgent => OF_SSH_AGENTS,
        };
        let body = if self.body.is_some() { OF_BODIES } else { &[] };
        let mine = move |code: &Code| {
            OF_EVERY_ROUTE.contains(code)
                || caller.contains(code)
                || body.contains(code)
                || self.own_codes.contains(code)
        };
        Code::ALL.iter().copied().filter(mine)
    }

    /// Whether it has an `ETag` where it refuses nothing.
    pub(crate) fn is_tagged(&self) -> bool {
        self.headers.iter().any(|header| matches!(header.values, Values::EntityTags))
    }
}

const OF_EVERY_ROUTE: &[Code] =
    &[Code::MalformedRequest, Code::MethodNotAllowed, Code::HeadTooLarge, Code::Internal];

const OF_RUNTIMES: &[Code] = &[
    Code::Unauthenticated,
    Code::SiteMismatch,
    Code::Forbidden,
    Code::InvalidRequest,
    Code::Overloaded,
    Code::BearersUnavailable,
    Code::TokenReviewUnavailable,
    Code::DatabaseUnavailable,
];

const OF_MEMBERS: &[Code] = &[
    Code::Unauthenticated,
    Code::InvalidRequest,
    Code::Overloaded,
    Code::LoginUnavailable,
    Code::DatabaseUnavailable,
];

/// Where the listener serves no SSH access, there is nothing at the path.
const OF_SSH_AGENTS: &[Code] = &[
    Code::Unauthenticated,
    Code::SiteMismatch,
    Code::Forbidden,
    Code::NotFound,
    Code::InvalidRequest,
    Code::Overloaded,
    Code::BearersUnavailable,
    Code::DatabaseUnavailable,
];

const OF_BODIES: &[Code] =
    &[Code::MalformedBody, Code::RequestTimeout, Code::BodyTooLarge, Code::UnsupportedMediaType];

const COMMAND_ID: Parameter = Parameter {
    name: "commandId",
    required: true,
    values: Values::Text { pattern: "^cmd_[0-9a-hjkmnp-tv-z]{32}$" },
    meaning: "The command.",
};

const OUTPUT_DIGEST: Parameter = Parameter {
    name: "digest",
    required: true,
    values: Values::Digest,
    meaning: "The SHA-256 of the body.",
};

const GENERATION: Parameter = Parameter {
    name: RUNTIME_GENERATION_HEADER,
    required: true,
    values: Values::Number { least: 1, most: None, default: None },
    meaning: "The generation that the Runtime writes with.",
};

const SESSION: Parameter = Parameter {
    name: RUNTIME_SESSION_HEADER,
    required: false,
    values: Values::Text { pattern: "^[A-Za-z0-9_-]{16,64}$" },
    meaning: "The session: required from generation 2 on, refused in generation 1.",
};

const AFTER: Parameter = Parameter {
    name: "after",
    required: false,
    values: Values::Number { least: 0, most: None, default: Some(0) },
    meaning: "Commands after this place.",
};

const AFTER_DIGEST: Parameter = Parameter {
    name: "afterDigest",
    required: false,
    values: Values::Digest,
    meaning: "The chain digest that the caller computed at `after`.",
};

const LIMIT: Parameter = Parameter {
    name: "limit",
    required: false,
    values: Values::Number { least: 0, most: Some(64), default: Some(64) },
    meaning: "Commands at the most; with 0 only cancels are asked for and waited for.",
};

const CANCEL_REV: Parameter = Parameter {
    name: "cancelRev",
    required: false,
    values: Values::Number { least: 0, most: None, default: Some(0) },
    meaning: "The count of cancels that the caller was told last.",
};

const NEXT: Parameter = Parameter {
    name: "next",
    required: false,
    values: Values::Number { least: 1, most: Some(64), default: None },
    meaning: "Bring so many of the next commands at the most along; `wait` and `cancelRev` need it.",
};

const WAIT: Parameter = Parameter {
    name: "wait",
    required: false,
    values: Values::Number { least: 0, most: Some(25), default: Some(0) },
    meaning: "Seconds to wait where there is nothing to tell, shortened by up to 10 % at random.",
};

const SSH_AFTER: Parameter = Parameter {
    name: "after",
    required: false,
    values: Values::Text { pattern: "^(0|[1-9][0-9]*)\\.[0-9a-f]{64}$" },
    meaning: "Changes after this place; from the very beginning where it is absent.",
};

const SSH_LIMIT: Parameter = Parameter {
    name: "limit",
    required: false,
    values: Values::Number {
        least: 1,
        most: Some(MAX_SSH_CHANGES as u64),
        default: Some(MAX_SSH_CHANGES as u64),
    },
    meaning: "Changes at the most.",
};

const RUN_ID: Parameter = Parameter {
    name: "runId",
    required: true,
    values: Values::Text { pattern: "^[A-Za-z0-9][A-Za-z0-9._~:-]{0,127}$" },
    meaning: "The Run.",
};

const IF_NONE_MATCH: Parameter = Parameter {
    name: "If-None-Match",
    required: false,
    values: Values::EntityTags,
    meaning: "Tags that the caller has what they tag of: then 304.",
};

/// Without `next` and with it.
const RECEIPTS: &[&str] = &["Receipt", "ReceiptAndNext"];

/// Every route, as [`crate::paths::ALL`] and then [`crate::paths::SSH_ACCESS`] have them.
pub const ROUTES: &[Route] = &[
    Route {
        id: "pollCommands",
        method: "GET",
        path: paths::COMMANDS,
        summary: "Reads the commands after a place, in order; waits where there is none.",
        caller: Caller::Runtime,
        path_parts: &[],
        headers: &[GENERATION, SESSION],
        query: &[AFTER, AFTER_DIGEST, LIMIT, CANCEL_REV, WAIT],
        body: None,
        answers: &[Success {
            status: 200,
            form: Form::Json,
            schemas: &["CommandPage"],
            meaning: "The commands and the cancels; none where nothing came in time.",
        }],
        own_codes: &[
            Code::StaleGeneration,
            Code::HistoryDiverged,
            Code::CursorAhead,
            Code::CursorTrimmed,
        ],
    },
    Route {
        id: "openSession",
        method: "POST",
        path: paths::COMMAND_SESSIONS,
        summary: "Takes the caller's stream over for a Runtime that starts.",
        caller: Caller::Runtime,
        path_parts: &[],
        headers: &[],
        query: &[],
        body: Some(Body::Json { schema: "SessionRequest" }),
        answers: &[
            Success {
                status: 200,
                form: Form::Json,
                schemas: &["Session"],
                meaning: "The session is the current one already.",
            },
            Success {
                status: 201,
                form: Form::Json,
                schemas: &["Session"],
                meaning: "Opened now.",
            },
        ],
        own_codes: &[Code::StaleGeneration, Code::SessionSuperseded],
    },
    Route {
        id: "storeResults",
        method: "PUT",
        path: paths::COMMAND_RESULTS,
        summary: "Stores the results of consecutive commands, each with a verdict of its own.",
        caller: Caller::Runtime,
        path_parts: &[],
        headers: &[GENERATION, SESSION],
        query: &[NEXT, CANCEL_REV, WAIT],
        body: Some(Body::Json { schema: "ResultBatch" }),
        answers: &[Success {
            status: 200,
            form: Form::Json,
            schemas: &["BatchAnswer"],
            meaning: "A receipt or a problem for each result.",
        }],
        own_codes: &[],
    },
    Route {
        id: "storeResult",
        method: "PUT",
        path: paths::COMMAND_RESULT,
        summary: "Stores the result of the command that is due.",
        caller: Caller::Runtime,
        path_parts: &[COMMAND_ID],
        headers: &[GENERATION, SESSION],
        query: &[NEXT, CANCEL_REV, WAIT],
        body: Some(Body::Json { schema: "ResultBody" }),
        answers: &[
            Success {
                status: 200,
                form: Form::Json,
                schemas: RECEIPTS,
                meaning: "The same bytes were stored before.",
            },
            Success { status: 201, form: Form::Json, schemas: RECEIPTS, meaning: "Stored now." },
        ],
        own_codes: &[
            Code::NotFound,
            Code::ResultConflict,
            Code::AlreadyVoided,
            Code::PredecessorMissing,
            Code::OutputMissing,
            Code::StaleGeneration,
            Code::HistoryDiverged,
        ],
    },
    Route {
        id: "storeOutput",
        method: "PUT",
        path: paths::COMMAND_OUTPUT,
        summary: "Keeps a private output of the command that is due, before its result names it.",
        caller: Caller::Runtime,
        path_parts: &[COMMAND_ID, OUTPUT_DIGEST],
        headers: &[GENERATION, SESSION],
        query: &[],
        body: Some(Body::Bytes),
        answers: &[
            Success {
                status: 200,
                form: Form::Json,
                schemas: &["OutputReceipt"],
                meaning: "The same bytes were stored before.",
            },
            Success {
                status: 201,
                form: Form::Json,
                schemas: &["OutputReceipt"],
                meaning: "Stored now.",
            },
        ],
        own_codes: &[
            Code::NotFound,
            Code::ResultConflict,
            Code::AlreadyVoided,
            Code::PredecessorMissing,
            Code::TooManyOutputs,
            Code::StaleGeneration,
            Code::HistoryDiverged,
        ],
    },
    Route {
        id: "readExecution",
        method: "GET",
        path: paths::EXECUTION,
        summary: "Reads an accepted Run of the caller's environment, with its Attempts.",
        caller: Caller::Reader,
        path_parts: &[RUN_ID],
        headers: &[IF_NONE_MATCH],
        query: &[],
        body: None,
        answers: &[
            Success {
                status: 200,
                form: Form::Json,
                schemas: &["Execution"],
                meaning: "The Run as it is now.",
            },
            Success {
                status: 304,
                form: Form::Nothing,
                schemas: &[],
                meaning: "Nothing of the Run is another than the caller has.",
            },
        ],
        own_codes: &[Code::NotFound, Code::ExecutionAuthorityDisabled],
    },
    Route {
        id: "authorise",
        method: "POST",
        path: paths::EXECUTION_AUTHORISATIONS,
        summary: "Says whether an Attempt of a Run may do something now.",
        caller: Caller::Runtime,
        path_parts: &[RUN_ID],
        headers: &[],
        query: &[],
        body: Some(Body::Json { schema: "AuthorisationRequest" }),
        answers: &[Success {
            status: 200,
            form: Form::Json,
            schemas: &["Authorisation"],
            meaning: "It may, at this moment; nothing of it is kept.",
        }],
        own_codes: &[
            Code::NotFound,
            Code::RunCancelled,
            Code::AttemptUnknown,
            Code::AttemptNotCurrent,
            Code::AttemptFinal,
            Code::DeadlinePassed,
            Code::BindingNotRetained,
            Code::PermissionDenied,
            Code::AuthorityUnavailable,
            Code::ExecutionAuthorityDisabled,
        ],
    },
    Route {
        id: "readOutput",
        method: "GET",
        path: paths::EXECUTION_OUTPUT,
        summary: "Reads the private output of a Run: that which the newest result of its commands names.",
        caller: Caller::Member,
        path_parts: &[RUN_ID],
        headers: &[IF_NONE_MATCH],
        query: &[],
        body: None,
        answers: &[
            Success {
                status: 200,
                form: Form::Octets,
                schemas: &[],
                meaning: "The output. The tag is the SHA-256 of its bytes.",
            },
            Success {
                status: 304,
                form: Form::Nothing,
                schemas: &[],
                meaning: "It is the one that the caller has.",
            },
        ],
        own_codes: &[
            Code::NotFound,
            Code::AuthorityUnavailable,
            Code::ExecutionAuthorityDisabled,
            Code::PrivateReadsDisabled,
        ],
    },
    Route {
        id: "healthz",
        method: "GET",
        path: paths::HEALTHZ,
        summary: "Says whether the process serves.",
        caller: Caller::Anyone,
        path_parts: &[],
        headers: &[],
        query: &[],
        body: None,
        answers: &[Success { status: 200, form: Form::Json, schemas: &[], meaning: "It serves." }],
        own_codes: &[Code::Draining],
    },
    Route {
        id: "readSshChanges",
        method: "GET",
        path: paths::SSH_CHANGES,
        summary: "Reads the changes of the Site's keys after a place, in order; waits where there is none.",
        caller: Caller::SshAgent,
        path_parts: &[],
        headers: &[],
        query: &[SSH_AFTER, SSH_LIMIT, WAIT],
        body: None,
        answers: &[Success {
            status: 200,
            form: Form::Json,
            schemas: &["SshChanges"],
            meaning: "The changes; none where nothing came in time.",
        }],
        own_codes: &[Code::CursorUnknown, Code::CursorCompacted],
    },
    Route {
        id: "readSshSnapshot",
        method: "GET",
        path: paths::SSH_SNAPSHOT,
        summary: "Reads all keys that are in force at the Site, as of one place.",
        caller: Caller::SshAgent,
        path_parts: &[],
        headers: &[],
        query: &[],
        body: None,
        answers: &[Success {
            status: 200,
            form: Form::JsonLines,
            schemas: &["SshSnapshotHead", "SshSnapshotKey", "SshSnapshotEnd"],
            meaning: "The place, each key, and their number; without the last line it is none.",
        }],
        own_codes: &[],
    },
    Route {
        id: "acknowledgeSshChanges",
        method: "PUT",
        path: paths::SSH_ACKNOWLEDGEMENT,
        summary: "Says what the Site has made durable, and attests what its files hold.",
        caller: Caller::SshAgent,
        path_parts: &[],
        headers: &[],
        query: &[],
        body: Some(Body::Json { schema: "SshAcknowledgement" }),
        answers: &[Success {
            status: 200,
            form: Form::Json,
            schemas: &["SshAcknowledged"],
            meaning: "As it is stored.",
        }],
        own_codes: &[Code::CursorUnknown, Code::CursorCompacted],
    },
];
