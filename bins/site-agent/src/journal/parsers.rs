//! A journal read from bytes, for tests.

use std::path::Path;

use site_client::Origin;

use super::{
    JournalError, Keep,
    file::{lines, replay},
    state::State,
};

/// What a journal says.
#[derive(Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many of its bytes count.
    pub length: u64,
    /// The shortest journal that says the same.
    pub shortest: Vec<u8>,
}

/// Reads a journal as an agent of `origin` does that keeps up to so many results, and so many bytes
/// of them and of their private outputs.
///
/// # Errors
///
/// Why an agent would not start with it.
pub fn journal(
    bytes: &[u8],
    origin: &Origin,
    (results, result_bytes, output_bytes): (usize, u64, u64),
) -> Result<Replayed, Box<dyn std::error::Error>> {
    let state = State::new(Keep { results, result_bytes, output_bytes });
    let (state, length) = replay(bytes, Path::new("journal"), origin, state)?;
    let shortest: Result<Vec<_>, _> = lines(origin, &state).collect();
    let shortest =
        shortest.map_err(|source| JournalError::Io { path: "journal".into(), source })?;
    Ok(Replayed { length, shortest: shortest.concat() })
}
