#![doc = include_str!("../README.md")]

mod announcer;
mod command;
mod digest;
mod error;
mod ids;
mod producer;
mod runtime;
mod schema;
mod statements;
mod store;
mod wakeups;
mod writer;

pub use command::{JsonText, NewCommand, Outcome, Receipt, StoredCommand};
pub use digest::Digest;
pub use error::{EnqueueError, OpenSessionError, PollError, ReadError, StoreResultError};
pub use ids::{
    CommandId, CommandKind, Environment, Generation, Invalid, ProducerKey, RunId, Seq, SiteId,
    Stream,
};
pub use producer::{CommandSummary, Enqueued, Producer};
pub use runtime::{CancelMark, Due, Opened, OpenedSession, Page, PollRequest, RuntimeSide, Stored};
pub use schema::{API_ROLE, KEEPER_ROLE, MIGRATIONS, PRODUCER_ROLE, ROLES, ROLES_SQL};
pub use wakeups::Wakeups;
pub use writer::{SessionId, Writer};
