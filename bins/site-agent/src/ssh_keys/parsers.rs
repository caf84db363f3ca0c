//! What an SSH agent reads, from bytes, for tests.

use chrono::{DateTime, Utc};
use site_client::Origin;

use super::{
    changes::checked,
    failures::visible,
    file::{HeldKey, Keys, UserFile},
    state,
};

/// A user's file that was written here, written again under another lease; `None` for any other.
#[must_use]
pub fn ssh_file(bytes: &[u8], lease: DateTime<Utc>) -> Option<String> {
    let UserFile { keys, .. } = UserFile::parse(bytes)?;
    Some(UserFile::new(keys, lease).to_string())
}

/// The name and the content of the file that a key alone comes into, as it came.
///
/// # Errors
///
/// The reason that is told.
pub fn ssh_key(
    user: &str,
    key_id: &str,
    key: &str,
    ends: Option<DateTime<Utc>>,
    lease: DateTime<Utc>,
) -> Result<(String, String), String> {
    let read = checked(user, key_id, key, ends).map_err(|reason| visible(&reason))?;
    let (user, id, held): (_, _, HeldKey) = read;
    let file = UserFile::new(Keys::from([(id, held)]), lease);
    Ok((user.as_str().to_owned(), file.to_string()))
}

/// A state of an agent of `origin`, as it is kept again; `None` where a snapshot takes its place.
///
/// # Errors
///
/// Why the agent would not start with it.
pub fn ssh_state(
    bytes: &[u8],
    origin: &Origin,
) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error>> {
    let position = state::parse(bytes, origin)?;
    Ok(position.map(|position| state::text(&position, origin)).transpose()?)
}
