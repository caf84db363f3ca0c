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

pub use command::{JsonText, NewCommand, Outcome, Receipt, StoredCommand};
pub use digest::Digest;
pub use error::{EnqueueError, PollError, ReadError, StoreResultError};
pub use ids::{
    CommandId, CommandKind, Environment, Generation, Invalid, ProducerKey, RunId, Seq, SiteId,
    Stream,
};
pub use producer::{CommandSummary, Enqueued, Producer};
pub use runtime::{Due, Page, PollRequest, RuntimeSide, Stored};
pub use schema::{API_ROLE, KEEPER_ROLE, MIGRATIONS, PRODUCER_ROLE, ROLES, ROLES_SQL};
pub use wakeups::Wakeups;
