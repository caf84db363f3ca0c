//! How a call can fail, and what that means for the next try.

use std::time::Duration;

use https_client::is_refused_certificate;
use site_protocol::Problem;

use crate::{ChainError, FeedError, Refusal};

/// Why a call gave no usable answer. Holds neither the token nor a body, nor does it print them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No complete answer: no connection, a cut, or too slow. Whether the server acted is unknown.
    #[error("no complete answer of the Site API")]
    Transport(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The trust roots do not vouch for the certificate that the other side presented: it is
    /// another server, or its certificate has expired or was replaced. Nothing was sent.
    #[error("the certificate of the Site API is not trusted")]
    Untrusted(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The Site API refused, and says why.
    #[error("the Site API refused: {} ({}): {}", .0.code, .0.status, .0.detail)]
    Problem(Box<Problem>),
    /// An answer that the Site API did not give, such as a gateway's page.
    #[error("status {status} of something else than the Site API")]
    NotOurs {
        /// The HTTP status.
        status: u16,
        /// What `Retry-After` asks for, where it is a number of seconds.
        retry_after: Option<Duration>,
    },
    /// A success whose content is not what was asked for.
    #[error("the answer is not usable")]
    BadAnswer(#[source] BadAnswer),
    /// A page that does not continue the stream that was presented.
    #[error("the page does not continue the stream")]
    Chain(#[source] ChainError),
    /// A page of changes that does not continue the feed that was presented.
    #[error("the page does not continue the feed")]
    Feed(#[source] FeedError),
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAnswer {
    /// The body is larger than the client takes.
    #[error("the answer is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The client's limit.
        limit_bytes: usize,
    },
    /// Not JSON, or not of the shape that the route answers with.
    #[error("the answer is not the expected JSON, at line {line}, column {column}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// More commands than were asked for.
    #[error("the page holds more commands than were asked for")]
    TooManyCommands,
    /// The receipt is for another command or other bytes than those that were sent.
    #[error("the receipt is for another result")]
    OtherReceipt,
    /// The answer is for another session, or puts it at a place that no stream can have.
    #[error("the answer is for another session")]
    OtherSession,
    /// More changes than were asked for.
    #[error("the page holds more changes than were asked for")]
    TooManyChanges,
    /// A lease that is longer than a Site's can be.
    #[error("the lease is longer than a day")]
    Lease,
    /// A line of a snapshot is too long, is not what stands there, or does not follow the one before
    /// it.
    #[error("line {line} of the snapshot is not what has to stand there")]
    Snapshot {
        /// The line, from 1; 0 where there is none.
        line: u64,
    },
    /// A snapshot without its last line.
    #[error("the snapshot ended after {lines} lines without saying that it is complete")]
    IncompleteSnapshot {
        /// The lines that there were.
        lines: u64,
    },
    /// The answer is about another acknowledgement, or puts it where it can't be.
    #[error("the answer is for another acknowledgement")]
    OtherAcknowledgement,
}

impl CallError {
    /// Whether the same call may succeed later without a change on this side.
    ///
    /// An unusable answer counts as retryable: the next one comes perhaps not from a broken
    /// gateway. A page that breaks a chain does not.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Transport(_) | Self::Untrusted(_) | Self::BadAnswer(_) => true,
            Self::Problem(problem) => problem.retryable,
            Self::NotOurs { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Self::Chain(_) | Self::Feed(_) => false,
        }
    }

    /// How long the server asks to wait before the next try.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem(problem) => problem.retry_after_ms.map(Duration::from_millis),
            Self::NotOurs { retry_after, .. } => *retry_after,
            Self::Transport(_)
            | Self::Untrusted(_)
            | Self::BadAnswer(_)
            | Self::Chain(_)
            | Self::Feed(_) => None,
        }
    }

    /// What the Site API says about the stream, where it refused.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Problem(problem) => Some(Refusal::of(problem)),
            _ => None,
        }
    }

    /// The stable code of the problem, where the Site API refused.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Problem(problem) => Some(&problem.code),
            _ => None,
        }
    }

    /// Tells a refused certificate from all else that a connection can fail with.
    pub(crate) fn of_connection(error: hyper_util::client::legacy::Error) -> Self {
        if is_refused_certificate(&error) {
            Self::Untrusted(Box::new(error))
        } else {
            Self::Transport(Box::new(error))
        }
    }
}
