//! The context against a real PostgreSQL, with the restricted roles, and its rules without one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod authority;
mod migrations;
mod parsers;
mod races;
mod reader;
mod registry;
mod rights;
