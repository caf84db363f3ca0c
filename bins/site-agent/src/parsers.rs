//! What reads bytes from outside, for tests that start no agent. No promise is made to anybody else.

pub use crate::{
    handler::{
        invocation,
        parsers::{note, process, result},
    },
    journal::parsers::{Replayed, journal},
    ssh_keys::parsers::{ssh_file, ssh_key, ssh_state},
};
