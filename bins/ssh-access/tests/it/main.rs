//! `ssh-access` as an operator meets it: the real program and a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod rabbitmq;
mod running;
mod start;
