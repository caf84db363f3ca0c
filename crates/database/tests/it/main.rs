//! Connections, pools, listeners and migrations against a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod broken;
mod connect;
mod listener;
mod migrations;
mod pool;
mod read;
