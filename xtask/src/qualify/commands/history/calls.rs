//! What producers asked for, and what they were told.

use site_protocol::Digest;

use super::{Moment, StreamName};

/// One try of a producer to bring commands into a stream. A call that is repeated until it is
/// acknowledged is noted once for each try; so is the same list after a restored database.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) stream: StreamName,
    /// Who called, such as `lab-a/slurm producer 3`.
    pub(crate) producer: String,
    pub(crate) way: Way,
    /// The commands in the order of the call.
    pub(crate) items: Vec<Item>,
    pub(crate) began: Moment,
    pub(crate) ended: Moment,
    pub(crate) answer: CallAnswer,
}

/// By which way commands come into a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// `Producer::enqueue`.
    Enqueue,
    /// `Producer::enqueue_many`.
    EnqueueMany,
    /// The statement in a transaction that stays open for a while.
    OpenTransaction,
}

/// A command that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) key: String,
    pub(crate) kind: String,
    pub(crate) run_id: Option<String>,
    /// SHA-256 of the body's text.
    pub(crate) body: Digest,
}

/// What a producer was told.
#[derive(Clone, Debug)]
pub(crate) enum CallAnswer {
    /// Everything is durable, each at its place, in the order of the call.
    Acknowledged(Vec<Place>),
    /// Nothing was stored by this try, and why: also a transaction that was rolled back.
    Refused(String),
    /// It may be stored, or not: the answer was lost.
    Unknown(String),
}

/// A place that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) command_id: String,
    pub(crate) seq: u64,
    /// Whether this try stored it. True also where it says so by mistake: that is what is checked.
    pub(crate) new: bool,
}
