//! The context against a real PostgreSQL, with the restricted roles.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod migrations;
mod parsers;
mod races;
mod registry;
mod rights;
