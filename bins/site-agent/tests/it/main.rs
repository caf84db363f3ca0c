//! The agent as a process, against a stream that fails in ways that the real Site API can't be
//! made to fail in. `real` has the real one, and the real database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod endings;
mod faults;
mod kills;
mod outputs;
mod projected;
mod real;
mod recovery;
mod restored;
mod sessions;
mod settings;
mod ssh_keys;
mod stopping;
mod stream;
mod units;

use std::time::Duration;

/// Generous: a slow machine is no defect.
const LONG: Duration = Duration::from_secs(60);
