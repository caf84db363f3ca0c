//! Asking over a real broker, of responders that are honest, hostile, slow and absent.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod rabbitmq;
mod support;
mod transport;
