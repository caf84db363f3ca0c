//! The context against a real PostgreSQL, with the restricted roles.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod backlog;
mod batches;
mod cancels;
mod enqueue;
mod expiry;
mod hints;
mod history;
mod keeper;
mod kills;
mod marks;
mod migrations;
mod next;
mod outbox;
mod outputs;
mod parsers;
mod poll;
mod races;
mod rights;
mod role;
mod sessions;
mod status;
mod store_result;
mod tick;
mod views;
mod wait_result;
mod waiting;
