//! The corpus of each fuzz target through the very function that the fuzzer calls, and what is near
//! the corpus.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corpus;
mod made;
mod mutations;
mod sources;
