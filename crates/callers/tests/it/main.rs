//! Behaviour of the crate as those who link it see it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod authorization;
mod bearer;
mod grants;
mod live;
mod principal;
mod review;
mod revoke;
mod store;
mod support;
