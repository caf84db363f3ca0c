#![doc = include_str!("../README.md")]

mod announcer;
mod command;
mod digest;
mod ending;
mod error;
mod ids;
mod keeper;
mod marks;
mod outbox;
#[doc(hidden)]
pub mod parsers;
mod producer;
mod rights;
mod runtime;
mod schema;
mod statements;
mod store;
mod summary;
mod views;
mod wakeups;
mod writer;

pub use command::{JsonText, NewCommand, Outcome, Receipt, StoredCommand};
pub use digest::Digest;
pub use ending::Ending;
pub use error::{
    CancelError, EnqueueError, OpenSessionError, PollError, ReadError, StoreOutputError,
    StoreResultError, VoidError, WaitError,
};
pub use ids::{
    CommandId, CommandKind, Environment, Generation, Invalid, ProducerKey, RunId, Seq, SiteId,
    Stream,
};
pub use keeper::{Keeper, Pruned, Retention};
pub use marks::{Cancelled, VoidNote, VoidReason, Voided};
pub use outbox::{Event, Outbox};
pub use producer::{Enqueued, Producer};
pub use rights::RIGHTS;
pub use runtime::{
    CancelMark, Due, NewResult, NextRequest, Opened, OpenedSession, Page, PollRequest, RuntimeSide,
    Stored, StoredOutput, StoredResults,
};
pub use schema::{API_ROLE, CONTEXT, KEEPER_ROLE, MIGRATIONS, PRODUCER_ROLE};
pub use summary::{CommandSummary, CurrentSession, StoredResult, StreamStatus};
pub use views::{ReadPartError, RunOutput, Views};
pub use wakeups::Wakeups;
pub use writer::{SessionId, Writer};
