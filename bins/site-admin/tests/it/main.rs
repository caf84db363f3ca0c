//! `site-admin` as an administrator meets it: the real program, real files, a real PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arguments;
mod bindings;
mod broker;
mod commands;
mod credentials;
mod database;
mod documents;
mod endings;
mod grants;
mod json;
mod keys;
mod lines;
mod output;
mod probe;
mod provision;
mod rabbitmq;
mod retention;
mod rotation;
mod runs;
mod support;
mod tls;
