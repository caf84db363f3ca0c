//! Behaviour of the kit as a service sees it: real sockets, real TLS.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod admin;
mod answer;
mod body;
mod drain;
mod fields;
mod listener;
mod log;
mod problem;
mod router;
mod service;
mod settings;
mod support;
mod tls;
mod wiped;
