//! The client against a peer that answers well, badly or not at all.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
