#![doc = include_str!("../README.md")]

mod account;
mod acknowledgement;
mod announcer;
mod change;
mod error;
mod feed;
mod ids;
mod key;
mod outbox;
mod propagator;
mod registry;
mod rights;
mod schema;
mod snapshot;
mod statements;
mod store;
mod wakeups;
mod window;

pub use account::{Account, AccountId};
pub use acknowledgement::{Acknowledged, Acknowledgement, Attested, Failure, Failures};
pub use change::{Change, ChangePage};
pub use error::{
    AcknowledgeError, AddAccountError, AddKeyError, ChangesError, PropagateError, ReadError,
    RemoveAccountError, RemoveKeyError,
};
pub use feed::Feed;
pub use ids::{Invalid, MemberId, SiteId};
pub use key::{KeyEnd, KeyState, NewKey, StoredKey};
pub use outbox::{Event, Outbox};
pub use propagator::{Leadership, Progress, Propagator, PropagatorLimits, Watched};
pub use registry::{AccountListing, Done, KeyListing, Registry};
pub use rights::RIGHTS;
pub use schema::{API_ROLE, CONTEXT, MIGRATIONS, PROCESS_ROLE, REGISTRY_ROLE};
pub use snapshot::{KeyInForce, Snapshot};
pub use ssh_keys::{
    Cursor, Digest, Fingerprint, KeyId, KeyRefusal, KeyType, KeyWarning, Operation, PublicKey,
    UnixUser,
};
pub use wakeups::Wakeups;
pub use window::Window;
