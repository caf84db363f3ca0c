#![doc = include_str!("../README.md")]

mod binding;
mod error;
mod ids;
mod reader;
mod registry;
mod rights;
mod schema;
mod statements;
mod store;

pub use binding::{Binding, NewBinding};
pub use error::{ReadError, ReleaseError, RetainError};
pub use ids::{Account, BindingId, Gid, Invalid, MemberId, SiteId, Uid, UnixUser};
pub use reader::Bindings;
pub use registry::{Done, Listing, Registry};
pub use rights::RIGHTS;
pub use schema::{API_ROLE, CONTEXT, MIGRATIONS, WRITER_ROLE};
