//! Behaviour of the crate as those who link it see it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authorization;
mod bearer;
mod grants;
mod live;
mod login;
mod principal;
mod review;
mod revoke;
mod service_account;
mod store;
mod subjects;
mod support;
