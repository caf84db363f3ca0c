#![doc = include_str!("../README.md")]

mod change;
mod cursor;
mod digest;
mod ids;
mod key;
mod line;
mod reserved;
mod set;

pub use change::{ChangeFields, Operation};
pub use cursor::Cursor;
pub use digest::Digest;
pub use ids::{Invalid, KeyId, UnixUser};
pub use key::{Fingerprint, KeyRefusal, KeyType, KeyWarning, PublicKey};
pub use line::{AuthorizedLine, MANAGED_MARK};
pub use reserved::RESERVED_USERS;
pub use set::{OutOfOrder, SetDigest};
