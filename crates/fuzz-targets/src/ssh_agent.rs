//! What an SSH agent writes and finds again: users' files, and its state.

use chrono::DateTime;
use site_agent::parsers;
use site_client::Origin;
use ssh_keys::{AuthorizedLine, MANAGED_MARK, UnixUser};

use crate::assert_quiet;

/// The bytes are a file; and, as lines, the user, the key's id, the key and its end in seconds of a
/// key that came.
pub(crate) fn file(bytes: &[u8]) {
    let lease = DateTime::from_timestamp(1_900_000_000, 0).unwrap();
    if let Some(again) = parsers::ssh_file(bytes, lease) {
        crate::taken();
        every_line_is_bounded(&again, lease.timestamp());
        assert_eq!(parsers::ssh_file(again.as_bytes(), lease).as_deref(), Some(again.as_str()));
        // The same keys in the same order.
        let read = std::str::from_utf8(bytes).unwrap();
        assert_eq!(keys(read), keys(&again));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.splitn(4, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (user, id, ends, key) = (next(), next(), next(), next());
    let ends = ends.parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    match parsers::ssh_key(user, id, key, ends, lease) {
        Ok((name, content)) => {
            crate::taken();
            assert_eq!(name, user);
            assert!(UnixUser::parse(&name).is_ok() && !name.contains(['/', '.']));
            every_line_is_bounded(&content, lease.timestamp());
            assert_eq!(keys(&content), [format!("{key} {id}")]);
            assert_eq!(parsers::ssh_file(content.as_bytes(), lease), Some(content));
        }
        Err(reason) => {
            assert!(reason.starts_with("refused_") && reason.len() <= 200, "{reason}");
            assert!(reason.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{reason}");
            if key.len() > 16 {
                assert_quiet(&reason, key);
            }
        }
    }
}

/// A mark, comments, and lines that end with the lease or before it.
fn every_line_is_bounded(file: &str, lease: i64) {
    let (mark, rest) = file.split_once('\n').unwrap();
    assert_eq!(mark, MANAGED_MARK);
    assert!(rest.is_ascii() && rest.ends_with('\n') && !rest.contains('\r'));
    for line in rest.lines().filter(|line| !line.starts_with("# ")) {
        let line = AuthorizedLine::parse(line).unwrap();
        assert!(line.until().timestamp() <= lease);
    }
}

/// What stands behind the options of each line.
fn keys(file: &str) -> Vec<String> {
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(",restrict,pty ").unwrap().1.to_owned()).collect()
}

/// The file in an agent's state folder.
pub(crate) fn state(bytes: &[u8]) {
    let origin = Origin::parse("https://site.example").unwrap();
    let Ok(Some(kept)) = parsers::ssh_state(bytes, &origin) else { return };
    crate::taken();
    let again = parsers::ssh_state(&kept, &origin).unwrap().unwrap();
    assert_eq!(again, kept);
    let other = Origin::parse("https://other.example").unwrap();
    assert!(parsers::ssh_state(bytes, &other).is_err(), "it is of another Site API");
}
