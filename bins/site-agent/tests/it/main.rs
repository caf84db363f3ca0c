//! The agent as a process, against a stream that fails in ways that the real Site API can't be
//! made to fail in. That both work together is tested where both are at hand.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod faults;
mod kills;
mod settings;
mod stopping;
mod stream;

use std::time::Duration;

/// Generous: a slow machine is no defect.
const LONG: Duration = Duration::from_secs(60);
