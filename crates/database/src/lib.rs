#![doc = include_str!("../README.md")]

mod admin;
mod connect;
mod context;
mod error;
mod listener;
mod migrations;
#[doc(hidden)]
pub mod parsers;
mod pool;
mod read;
mod role;
mod statement;
mod url;

pub use admin::AdminConnection;
pub use connect::ConnectError;
pub use context::{Context, RoleRights};
pub use error::DatabaseError;
pub use listener::{Hint, Listener};
pub use migrations::{MigrateError, Migrations, SchemaError};
pub use pool::{Pool, PoolLimits};
pub use read::ReadTransaction;
pub use role::{RightsError, Role, RoleError};
pub use statement::{Binds, Statement};
pub use url::{DatabaseUrl, DatabaseUrlError};
