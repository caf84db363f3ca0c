#![doc = include_str!("../README.md")]

mod authorization;
mod bearer;
mod grants;
mod jwt;
mod live;
pub mod login;
#[doc(hidden)]
pub mod parsers;
mod principal;
pub mod review;
mod service_account;
mod store;
mod subjects;

pub use authorization::{Presented, Unauthenticated, presented};
pub use bearer::{BearerId, Malformed, NativeBearer};
pub use grants::{Grant, GrantState, Grants, GrantsErrors, Refused};
pub use jwt::Jwt;
pub use live::{Found, LiveGrants, Standing};
pub use principal::{Environment, NameError, Principal, Scope, SiteId};
pub use service_account::{NotAServiceAccount, ServiceAccount, ServiceAccountToken};
pub use store::{IssueError, RevokeError, Revoked, StoreError, WhichGrant, issue, read, revoke};
pub use subjects::{SubjectErrors, SubjectGrant, SubjectGrants};
