//! The context against a real PostgreSQL, with the restricted roles.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod backlog;
mod enqueue;
mod history;
mod kills;
mod migrations;
mod parsers;
mod poll;
mod races;
mod rights;
mod role;
mod sessions;
mod store_result;
mod waiting;
