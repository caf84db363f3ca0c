//! The stable codes of problems: one table with everything that is said about each.
//! `docs/ERRORS.md` is generated from it.

/// The stable code of a problem: the thing that a program matches on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The body is not JSON, or not the JSON object that the route takes.
    MalformedBody,
    /// The bytes are no HTTP/1.1 request. The connection is closed.
    MalformedRequest,
    /// Fields, query parameters or headers are missing, unknown or out of range.
    InvalidRequest,
    /// No accepted credential. One answer for all reasons.
    Unauthenticated,
    /// The caller belongs to another Site than the one of this listener.
    SiteMismatch,
    /// The caller is known and may not do this.
    Forbidden,
    /// The member has not the permission that the action needs.
    PermissionDenied,
    /// Absent, or none of the caller's business.
    NotFound,
    /// The path exists, the method does not; `Allow` names those that do.
    MethodNotAllowed,
    /// The body did not arrive in time.
    RequestTimeout,
    /// Another result is stored for this command; `storedDigest` is its digest.
    ResultConflict,
    /// An earlier command of the stream has no result yet; `doneSeq` is the last that has.
    PredecessorMissing,
    /// A newer Runtime has taken the stream; `generation` is the current one.
    StaleGeneration,
    /// The session was superseded by a newer one; its id is refused for ever. `generation` is the
    /// current one.
    SessionSuperseded,
    /// The command was voided: it will have no result. `voidedAt` says when.
    AlreadyVoided,
    /// The result names a private output that was not stored before.
    OutputMissing,
    /// The command has as many private outputs as it may have; `limit` says how many.
    TooManyOutputs,
    /// The chain digest or the generation is not one of this stream: a database was restored.
    HistoryDiverged,
    /// The cursor is above the end of the stream; `lastSeq` is the end.
    CursorAhead,
    /// The cursor of an SSH agent is not one of this feed: above its end, or of another history.
    CursorUnknown,
    /// The Run was cancelled.
    RunCancelled,
    /// The Run has no such Attempt.
    AttemptUnknown,
    /// A later Attempt was submitted; `latestAttempt` is its number.
    AttemptNotCurrent,
    /// The Attempt is over.
    AttemptFinal,
    /// The deadline of the Run has passed.
    DeadlinePassed,
    /// No binding of the member to an account of the Site is retained.
    BindingNotRetained,
    /// The commands after the cursor were removed by age. `after` and `afterDigest` are where to
    /// start again.
    CursorTrimmed,
    /// The changes after the cursor of an SSH agent were removed by age: a snapshot has what they
    /// came to.
    CursorCompacted,
    /// The body is larger than the limit; `limitBytes` names it.
    BodyTooLarge,
    /// The request's head is larger than the listener takes. The connection is closed.
    HeadTooLarge,
    /// The body's content type is not the one that the route takes.
    UnsupportedMediaType,
    /// Too many requests at once.
    Overloaded,
    /// The listener is stopping.
    Draining,
    /// Native bearers can't be checked: there is no usable grants file.
    BearersUnavailable,
    /// Tokens of ServiceAccounts can't be reviewed: the cluster's API server gives no usable answer.
    TokenReviewUnavailable,
    /// Access tokens can't be verified: the login issuer's keys can't be fetched.
    LoginUnavailable,
    /// The listener serves no execution authority.
    ExecutionAuthorityDisabled,
    /// Whether the member has the permission could not be asked.
    AuthorityUnavailable,
    /// The listener has no caller that could ask who may see a private output.
    PrivateReadsDisabled,
    /// The database did not answer.
    DatabaseUnavailable,
    /// A fault of ours; the request id finds it in the log.
    Internal,
}

/// A member that the problems of a code have beside the common ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name in the JSON.
    pub name: &'static str,
    /// What its value looks like.
    pub shape: Shape,
    /// What it says.
    pub meaning: &'static str,
}

/// What a member's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A whole number from 0.
    Number,
    /// 64 lower-case hexadecimal characters.
    Digest,
    /// A time in RFC 3339.
    Time,
}

impl Code {
    /// Every code, in the order of their status.
    pub const ALL: &'static [Self] = &[
        Self::MalformedRequest,
        Self::MalformedBody,
        Self::Unauthenticated,
        Self::SiteMismatch,
        Self::Forbidden,
        Self::PermissionDenied,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::ResultConflict,
        Self::PredecessorMissing,
        Self::StaleGeneration,
        Self::SessionSuperseded,
        Self::AlreadyVoided,
        Self::OutputMissing,
        Self::TooManyOutputs,
        Self::HistoryDiverged,
        Self::CursorAhead,
        Self::CursorUnknown,
        Self::RunCancelled,
        Self::AttemptUnknown,
        Self::AttemptNotCurrent,
        Self::AttemptFinal,
        Self::DeadlinePassed,
        Self::BindingNotRetained,
        Self::CursorTrimmed,
        Self::CursorCompacted,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::InvalidRequest,
        Self::HeadTooLarge,
        Self::Internal,
        Self::Overloaded,
        Self::Draining,
        Self::BearersUnavailable,
        Self::TokenReviewUnavailable,
        Self::LoginUnavailable,
        Self::ExecutionAuthorityDisabled,
        Self::AuthorityUnavailable,
        Self::PrivateReadsDisabled,
        Self::DatabaseUnavailable,
    ];

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// The HTTP status that goes with it.
    #[must_use]
    pub fn status(self) -> u16 {
        self.row().status
    }

    /// The problem's title: the same for each occurrence.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// Whether the same request may succeed later without a change.
    #[must_use]
    pub fn retryable(self) -> bool {
        self.row().retryable
    }

    /// What it means, in whole sentences.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        self.row().meaning
    }

    /// Who has to do something about it, in whole sentences.
    #[must_use]
    pub fn acts(self) -> &'static str {
        self.row().acts
    }

    /// What its problems have beside the common members.
    #[must_use]
    pub fn members(self) -> &'static [Member] {
        self.row().members
    }

    fn row(self) -> Row {
        match self {
            Self::MalformedRequest => Row {
                word: "malformed_request",
                status: 400,
                title: "The request is malformed",
                retryable: false,
                meaning: "The bytes are no HTTP/1.1 request, or their head can be read in two ways: without a host or with two, with a length and chunks. The connection is closed.",
                acts: "Whoever wrote the client, or looks after a gateway on the way.",
                members: &[],
            },
            Self::MalformedBody => Row {
                word: "malformed_body",
                status: 400,
                title: "The body is malformed",
                retryable: false,
                meaning: "The body broke off, or is not what the route takes: JSON in UTF-8, an object of at most 256 fields, at most 128 arrays and objects deep.",
                acts: "Whoever wrote the client, unless the connection was cut.",
                members: &[],
            },
            Self::Unauthenticated => Row {
                word: "unauthenticated",
                status: 401,
                title: "Not authenticated",
                retryable: false,
                meaning: "There is no accepted credential: none, one of another form, one that is unknown, expired or revoked, or of a ServiceAccount that is granted nothing. It is one answer for all reasons; the header `WWW-Authenticate` is `Bearer`.",
                acts: "The administrator: issues a bearer, hands the right one out, or grants the ServiceAccount its stream; the log has the reason. A Runtime goes on trying, and tells somebody.",
                members: &[],
            },
            Self::SiteMismatch => Row {
                word: "site_mismatch",
                status: 403,
                title: "Another Site",
                retryable: false,
                meaning: "The bearer is of another Site than this listener.",
                acts: "The administrator: the Runtime has the wrong address or the wrong bearer.",
                members: &[],
            },
            Self::Forbidden => Row {
                word: "forbidden",
                status: 403,
                title: "Not allowed",
                retryable: false,
                meaning: "The caller is known and may not do this.",
                acts: "The administrator: the bearer is of another scope than the route, or the ServiceAccount is an admission account.",
                members: &[],
            },
            Self::PermissionDenied => Row {
                word: "permission_denied",
                status: 403,
                title: "The permission is denied",
                retryable: false,
                meaning: "The Run's member has not the permission in its Project that the action needs, as Beto said now. It may be given back later; nothing of the answer is kept.",
                acts: "Whoever gives permissions in the Project, if the member should have it. The Runtime does not do what it asked for.",
                members: &[],
            },
            Self::NotFound => Row {
                word: "not_found",
                status: 404,
                title: "Not found",
                retryable: false,
                meaning: "The path, or the command or Run in it, is not there, or is none of the caller's business: a Run of another Site or environment, or whose output the member may not see, is not told from one that does not exist.",
                acts: "Whoever wrote the client; a Runtime whose command is unknown has another stream's, or its database was restored.",
                members: &[],
            },
            Self::MethodNotAllowed => Row {
                word: "method_not_allowed",
                status: 405,
                title: "Method not allowed",
                retryable: false,
                meaning: "The path is there, the method is not. The header `Allow` names those that are.",
                acts: "Whoever wrote the client.",
                members: &[],
            },
            Self::RequestTimeout => Row {
                word: "request_timeout",
                status: 408,
                title: "The request took too long",
                retryable: true,
                meaning: "The body did not arrive in its time.",
                acts: "Nobody; the Runtime tries again.",
                members: &[],
            },
            Self::ResultConflict => Row {
                word: "result_conflict",
                status: 409,
                title: "Another result is stored",
                retryable: false,
                meaning: "Other bytes are stored as the result of this command, and stay.",
                acts: "An operator: the Runtime ran the command twice, or two Runtimes did. It stops.",
                members: &[Member {
                    name: "storedDigest",
                    shape: Shape::Digest,
                    meaning: "the digest of the stored result or output",
                }],
            },
            Self::PredecessorMissing => Row {
                word: "predecessor_missing",
                status: 409,
                title: "An earlier result is missing",
                retryable: true,
                meaning: "An earlier command of the stream has neither a result nor a void.",
                acts: "Nobody; the Runtime polls, and sends what is due first.",
                members: &[Member {
                    name: "doneSeq",
                    shape: Shape::Number,
                    meaning: "the last command that has a result or is voided",
                }],
            },
            Self::StaleGeneration => Row {
                word: "stale_generation",
                status: 409,
                title: "The stream was taken over",
                retryable: false,
                meaning: "The generation, or its session, is not the current one: another Runtime opened a session since.",
                acts: "Nobody, if that was meant. The Runtime exits and does not take the stream back by itself.",
                members: &[Member {
                    name: "generation",
                    shape: Shape::Number,
                    meaning: "the current generation",
                }],
            },
            Self::SessionSuperseded => Row {
                word: "session_superseded",
                status: 409,
                title: "The session was superseded",
                retryable: false,
                meaning: "The session's id was superseded by a newer one and is refused for ever.",
                acts: "Nobody, if that was meant. The Runtime exits.",
                members: &[Member {
                    name: "generation",
                    shape: Shape::Number,
                    meaning: "the current generation",
                }],
            },
            Self::AlreadyVoided => Row {
                word: "already_voided",
                status: 409,
                title: "The command was voided",
                retryable: false,
                meaning: "The command will have no result; what was sent is not stored.",
                acts: "Nobody; the Runtime goes on with the next command.",
                members: &[Member {
                    name: "voidedAt",
                    shape: Shape::Time,
                    meaning: "when it was voided",
                }],
            },
            Self::OutputMissing => Row {
                word: "output_missing",
                status: 409,
                title: "The output is missing",
                retryable: false,
                meaning: "The result names a private output that was not stored before.",
                acts: "Nobody; the Runtime stores the output, then sends the result again.",
                members: &[],
            },
            Self::TooManyOutputs => Row {
                word: "too_many_outputs",
                status: 409,
                title: "Too many outputs",
                retryable: false,
                meaning: "The command has as many private outputs as it may have.",
                acts: "Whoever wrote the handler: it makes another output each time.",
                members: &[Member {
                    name: "limit",
                    shape: Shape::Number,
                    meaning: "how many it may have",
                }],
            },
            Self::HistoryDiverged => Row {
                word: "history_diverged",
                status: 409,
                title: "The history differs",
                retryable: false,
                meaning: "The chain digest or the generation is not one of this stream: a database was restored.",
                acts: "An operator; docs/PROTOCOL.md says what the Runtime does.",
                members: &[Member {
                    name: "generation",
                    shape: Shape::Number,
                    meaning: "the current generation, where a result or an output came with one above it",
                }],
            },
            Self::CursorAhead => Row {
                word: "cursor_ahead",
                status: 409,
                title: "The cursor is above the end",
                retryable: false,
                meaning: "The cursor is above the end of the stream: a database was restored, or the stream is another one.",
                acts: "An operator, as for `history_diverged`.",
                members: &[Member {
                    name: "lastSeq",
                    shape: Shape::Number,
                    meaning: "the end of the stream",
                }],
            },
            Self::CursorUnknown => Row {
                word: "cursor_unknown",
                status: 409,
                title: "The cursor is unknown",
                retryable: false,
                meaning: "The cursor is above the end of the feed, or its chain digest is another one: a database was restored, or the feed is another one.",
                acts: "Nobody at first: the SSH agent takes a snapshot. An operator, where no database was restored.",
                members: &[],
            },
            Self::RunCancelled => Row {
                word: "run_cancelled",
                status: 409,
                title: "The Run was cancelled",
                retryable: false,
                meaning: "The Run was cancelled, for ever: it may do nothing any more.",
                acts: "Nobody, if that was meant. The Runtime ends what it does for the Run.",
                members: &[],
            },
            Self::AttemptUnknown => Row {
                word: "attempt_unknown",
                status: 409,
                title: "There is no such Attempt",
                retryable: false,
                meaning: "The Run has no Attempt of this number.",
                acts: "Whoever wrote the Runtime: it takes the number from the command, or from the Run.",
                members: &[],
            },
            Self::AttemptNotCurrent => Row {
                word: "attempt_not_current",
                status: 409,
                title: "The Attempt is not the latest",
                retryable: false,
                meaning: "A later Attempt of the Run was submitted: this one may do nothing any more.",
                acts: "Nobody, if that was meant. The Runtime ends the Attempt.",
                members: &[Member {
                    name: "latestAttempt",
                    shape: Shape::Number,
                    meaning: "the Attempt that was submitted last",
                }],
            },
            Self::AttemptFinal => Row {
                word: "attempt_final",
                status: 409,
                title: "The Attempt is over",
                retryable: false,
                meaning: "The Attempt was noted as over, for ever.",
                acts: "Nobody; the Runtime ends what it still does for the Attempt.",
                members: &[],
            },
            Self::DeadlinePassed => Row {
                word: "deadline_passed",
                status: 409,
                title: "The deadline has passed",
                retryable: false,
                meaning: "The deadline of the Run has passed, by the database's clock: it may not execute any more.",
                acts: "Nobody; the Runtime ends the Attempt.",
                members: &[],
            },
            Self::BindingNotRetained => Row {
                word: "binding_not_retained",
                status: 409,
                title: "No binding is retained",
                retryable: false,
                meaning: "No binding of the Run's member to an account of the Site is retained: it was released, or there was none.",
                acts: "Whoever binds members to accounts of the Site, if the member should have one.",
                members: &[],
            },
            Self::CursorTrimmed => Row {
                word: "cursor_trimmed",
                status: 410,
                title: "The commands were removed",
                retryable: false,
                meaning: "The commands after the cursor were removed by age. All of them have ended.",
                acts: "Nobody; the Runtime goes on from `after` with `afterDigest`, and an operator is told.",
                members: &[
                    Member { name: "after", shape: Shape::Number, meaning: "where to go on" },
                    Member {
                        name: "afterDigest",
                        shape: Shape::Digest,
                        meaning: "the chain digest there",
                    },
                ],
            },
            Self::CursorCompacted => Row {
                word: "cursor_compacted",
                status: 410,
                title: "The changes were removed",
                retryable: false,
                meaning: "The changes after the cursor were removed by age.",
                acts: "Nobody; the SSH agent takes a snapshot.",
                members: &[],
            },
            Self::BodyTooLarge => Row {
                word: "body_too_large",
                status: 413,
                title: "The body is too large",
                retryable: false,
                meaning: "The body is larger than the limit.",
                acts: "Whoever wrote the client or the handler; the administrator can raise the limit.",
                members: &[Member {
                    name: "limitBytes",
                    shape: Shape::Number,
                    meaning: "the limit, in bytes",
                }],
            },
            Self::UnsupportedMediaType => Row {
                word: "unsupported_media_type",
                status: 415,
                title: "Unsupported content type",
                retryable: false,
                meaning: "The body's content type is not the one of the route, or the body has an encoding.",
                acts: "Whoever wrote the client.",
                members: &[],
            },
            Self::InvalidRequest => Row {
                word: "invalid_request",
                status: 422,
                title: "The request is invalid",
                retryable: false,
                meaning: "Fields, query parameters or headers are missing, unknown, out of range or there twice. Every wrong one is named, up to 32.",
                acts: "Whoever wrote the client.",
                members: &[],
            },
            Self::HeadTooLarge => Row {
                word: "head_too_large",
                status: 431,
                title: "The head is too large",
                retryable: false,
                meaning: "The request's head is larger than the listener takes, or has over 100 headers. The connection is closed.",
                acts: "Whoever wrote the client, or looks after a gateway on the way.",
                members: &[],
            },
            Self::Internal => Row {
                word: "internal",
                status: 500,
                title: "Internal error",
                retryable: true,
                meaning: "A fault of ours. The log has the reason under the request's id.",
                acts: "An operator, with the request's id.",
                members: &[],
            },
            Self::Overloaded => Row {
                word: "overloaded",
                status: 503,
                title: "Too many requests",
                retryable: true,
                meaning: "Too many requests at once, too many large bodies or outputs at once, too many tokens under review or waiting for the login issuer's keys at once, or others stored in the same stream again and again.",
                acts: "Nobody at first; an operator where it stays.",
                members: &[],
            },
            Self::Draining => Row {
                word: "draining",
                status: 503,
                title: "The listener is stopping",
                retryable: true,
                meaning: "The listener is stopping.",
                acts: "Nobody; the next try reaches another process.",
                members: &[],
            },
            Self::BearersUnavailable => Row {
                word: "bearers_unavailable",
                status: 503,
                title: "Native bearers can't be checked",
                retryable: true,
                meaning: "Native bearers can't be checked: there is no usable grants file.",
                acts: "The administrator; the alarm `native_grants` has the reason.",
                members: &[],
            },
            Self::TokenReviewUnavailable => Row {
                word: "token_review_unavailable",
                status: 503,
                title: "Tokens can't be reviewed",
                retryable: true,
                meaning: "The cluster's API server does not say whose the token is: it is away, or does not take our own reviewer.",
                acts: "The administrator; the alarm `token_review` has the reason, docs/KUBERNETES.md what to do.",
                members: &[],
            },
            Self::LoginUnavailable => Row {
                word: "login_unavailable",
                status: 503,
                title: "Access tokens can't be verified",
                retryable: true,
                meaning: "The login issuer's keys can't be fetched: it is away, or what it answers can't be used.",
                acts: "The administrator; the alarm `login` has the reason, docs/LOGIN.md what to do.",
                members: &[],
            },
            Self::ExecutionAuthorityDisabled => Row {
                word: "execution_authority_disabled",
                status: 503,
                title: "Execution authority is disabled",
                retryable: true,
                meaning: "The listener serves no execution authority: `SITE_API_EXECUTION_AUTHORITY_ENABLED` is not `true`.",
                acts: "The administrator, where it should; docs/EXECUTIONS.md says how.",
                members: &[],
            },
            Self::AuthorityUnavailable => Row {
                word: "authority_unavailable",
                status: 503,
                title: "The permission could not be asked",
                retryable: true,
                meaning: "Beto did not say in time whether the member has the permission: it is no yes, and no lasting no.",
                acts: "Nobody at first: who called asks again, and a Runtime does nothing meanwhile. An operator where it stays; the alarm `beto` has the reason.",
                members: &[],
            },
            Self::PrivateReadsDisabled => Row {
                word: "private_reads_disabled",
                status: 503,
                title: "Private reads are disabled",
                retryable: true,
                meaning: "The listener has no caller that could ask Beto who may see a private output: `SITE_COORDINATION_VIEWS_BROKER_URL` is not set.",
                acts: "The administrator, where members should read private outputs; docs/EXECUTIONS.md says how.",
                members: &[],
            },
            Self::DatabaseUnavailable => Row {
                word: "database_unavailable",
                status: 503,
                title: "The database does not answer",
                retryable: true,
                meaning: "The database does not answer.",
                acts: "An operator; the alarm `database` has the reason.",
                members: &[],
            },
        }
    }
}

struct Row {
    word: &'static str,
    status: u16,
    title: &'static str,
    retryable: bool,
    meaning: &'static str,
    acts: &'static str,
    members: &'static [Member],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_listed_once_under_its_own_word() {
        let mut words: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn the_list_is_in_the_order_of_the_status() {
        assert!(Code::ALL.is_sorted_by_key(|code| code.status()));
    }
}
