//! The context against a real PostgreSQL, with the restricted roles, and its rules without one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

mod acknowledgements;
mod compaction;
mod costs;
mod feed;
mod leases;
mod many;
mod migrations;
mod outbox;
mod overlaps;
mod parsers;
mod propagation;
mod races;
mod registry;
mod rights;
mod running;
mod snapshots;
mod waiting;
mod watching;
