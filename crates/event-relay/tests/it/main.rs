//! The relay against a real broker, and against what is none.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod rabbitmq;
mod support;
mod transport;
