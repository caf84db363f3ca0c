//! What stands in the folder of the agent, looked at as sshd would: by name.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::Path,
};

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

use crate::ssh_site::WINDOW;

/// The first line of every file of the agent.
const MARK: &str = "# site-control: managed by site-agent ssh-keys; do not edit";

/// The user whose file is somebody else's and not the agent's.
pub(super) const UNMANAGED: &str = "guest";

/// The ids of the keys of each user.
pub(super) type Held = BTreeMap<String, BTreeSet<String>>;

/// A file at one moment.
pub(super) struct Seen {
    pub(super) name: String,
    bytes: Vec<u8>,
    mode: u32,
    owner: u32,
}

/// Every file that is there, one after the other; one that goes meanwhile is left out.
pub(super) fn look(folder: &Path) -> io::Result<Vec<Seen>> {
    let mut seen = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            return Err(io::Error::other("a name that is no text"));
        };
        match read(&entry.path()) {
            Ok((bytes, mode, owner)) => seen.push(Seen { name, bytes, mode, owner }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(seen)
}

/// Content, rights and owner of the one file that stands in a place.
fn read(path: &Path) -> io::Result<(Vec<u8>, u32, u32)> {
    let mut file = fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let metadata = file.metadata()?;
    Ok((bytes, metadata.mode() & 0o7777, metadata.uid()))
}

/// What the files of the agent hold.
pub(super) fn held(folder: &Path) -> io::Result<Held> {
    let files = look(folder)?.into_iter();
    let ours = files.filter(|file| file.name != UNMANAGED && !file.name.starts_with('.'));
    Ok(ours.map(|file| (file.name, ids(&file.bytes))).collect())
}

/// The ids in a file, whatever else is in it.
fn ids(bytes: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect()
}

impl Seen {
    /// Whether it is half written: a file under another name, beside its place.
    pub(super) fn is_temporary(&self) -> bool {
        let parts = self.name.strip_prefix('.').and_then(|name| name.split_once('.'));
        parts.is_some_and(|(user, random)| {
            is_user(user)
                && random.len() == 16
                && random.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }

    /// What is wrong with it at a moment; nothing of a file that is whole.
    pub(super) fn fault(&self, now: DateTime<Utc>) -> Option<String> {
        if self.name == UNMANAGED || self.is_temporary() {
            return None;
        }
        if !is_user(&self.name) {
            return Some("it is no user's file".to_owned());
        }
        if (self.mode, self.owner) != (0o644, 0) {
            return Some(format!("mode {:o} and owner {}", self.mode, self.owner));
        }
        content_fault(&self.bytes, now)
    }
}

/// What is wrong with the content of a managed file.
fn content_fault(bytes: &[u8], now: DateTime<Utc>) -> Option<String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Some("it is no text".to_owned()) };
    let Some(rest) = text.strip_prefix(MARK).and_then(|rest| rest.strip_prefix('\n')) else {
        return Some("its first line is not the mark".to_owned());
    };
    if !rest.ends_with('\n') {
        return Some("its last line is cut, or it has none".to_owned());
    }
    let mut keys = 0;
    for line in rest.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            if !comment.split_once(" ends ").is_some_and(|(id, _)| is_id(id)) {
                return Some(format!("a comment that is none of ours: {line}"));
            }
            continue;
        }
        let Some((until, id)) = until_and_id(line) else {
            return Some(format!("a line that is not spelled as it should be: {line}"));
        };
        if until > now + TimeDelta::from_std(WINDOW).unwrap_or_default() {
            return Some(format!("{id} lives on until {until}"));
        }
        keys += 1;
    }
    (keys == 0).then(|| "it has no key".to_owned())
}

/// The end of a line and the id of its key, spelled as docs/SSH.md has it. The product's own parser is
/// not asked: it would agree with itself.
fn until_and_id(line: &str) -> Option<(DateTime<Utc>, &str)> {
    let (time, rest) = line.strip_prefix("expiry-time=\"")?.split_once("\",restrict,pty ")?;
    let digits = time.strip_suffix('Z')?;
    if digits.len() != 14 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let until = NaiveDateTime::parse_from_str(digits, "%Y%m%d%H%M%S").ok()?.and_utc();
    let mut words = rest.split(' ');
    // All keys of the lane are of this type.
    let (kind, key, id) = (words.next()?, words.next()?, words.next()?);
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_key = kind == "ssh-ed25519" && key.len() == 68 && key.bytes().all(base64);
    (is_key && is_id(id) && words.next().is_none()).then_some((until, id))
}

fn is_id(word: &str) -> bool {
    let crockford = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    word.strip_prefix("key_").is_some_and(|id| id.len() == 26 && id.bytes().all(crockford))
}

fn is_user(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let more = |byte: u8| letter(byte) || byte.is_ascii_digit() || byte == b'-';
    name.len() <= 32 && name.bytes().next().is_some_and(letter) && name.bytes().all(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIIq0FswFZ8OL+YrfKI7fSR87uGqP9oBgWHWbOnvfcEc";

    const ID: &str = "key_0123456789abcdefghjkmnpqr0";

    fn now() -> DateTime<Utc> {
        "2030-01-01T00:00:00Z".parse().unwrap()
    }

    fn file(lines: &[String]) -> Seen {
        let text = format!("{MARK}\n{}", lines.concat());
        Seen { name: "ada".to_owned(), bytes: text.into_bytes(), mode: 0o644, owner: 0 }
    }

    fn line(until: &str) -> String {
        format!("expiry-time=\"{until}\",restrict,pty {KEY} {ID}\n")
    }

    #[test]
    fn a_file_as_the_agent_writes_it_is_whole() {
        let ends = format!("# {ID} ends 20300101000030Z\n");
        for lines in [&[line("20300101000054Z")][..], &[ends, line("20300101000030Z")]] {
            assert_eq!(file(lines).fault(now()), None);
        }
    }

    #[test]
    fn whatever_else_is_in_a_file_is_a_fault() {
        let good = line("20300101000054Z");
        let bare = good.split_once(' ').unwrap().1.to_owned();
        for (lines, fault) in [
            (vec![], "its last line is cut, or it has none"),
            (vec![good.trim_end().to_owned()], "its last line is cut"),
            (vec![good.clone(), good[..60].to_owned() + "\n"], "a line that is not spelled"),
            (vec![bare], "a line that is not spelled"),
            (vec![good.replace("restrict,", "")], "a line that is not spelled"),
            (vec![good.replace("54Z", "54")], "a line that is not spelled"),
            (vec![good.replace("restrict,pty ", "restrict,pty,agent-forwarding ")], "a line that"),
            (vec![good.replace(ID, "")], "a line that is not spelled"),
            (vec![good.replace(ID, &format!("{ID} more"))], "a line that is not spelled"),
            (vec![line("20300101000101Z")], "lives on until"),
            (vec!["# a remark\n".to_owned(), good.clone()], "a comment that is none of ours"),
            (vec![format!("# {ID} ends x\n")], "it has no key"),
        ] {
            let found = file(&lines).fault(now()).unwrap_or_default();
            assert!(found.starts_with(fault) || found.contains(fault), "{found:?}, {fault:?}");
        }
        let mut unmarked = file(std::slice::from_ref(&good));
        unmarked.bytes.remove(0);
        assert!(unmarked.fault(now()).unwrap().contains("mark"));
        let open = Seen { mode: 0o666, ..file(std::slice::from_ref(&good)) };
        assert!(open.fault(now()).unwrap().contains("666"));
        let strange = Seen { name: "ada.old".to_owned(), ..file(&[good]) };
        assert!(strange.fault(now()).is_some());
    }

    #[test]
    fn a_file_beside_its_place_is_temporary_and_no_fault() {
        let named = |name: &str| Seen { name: name.to_owned(), ..file(&[]) };
        let temporary = named(".ada.0123456789abcdef");
        assert!(temporary.is_temporary() && temporary.fault(now()).is_none());
        for name in [".ada", "ada", ".ada.0123", ".ada.0123456789abcdeg", "..0123456789abcdef"] {
            assert!(!named(name).is_temporary(), "{name}");
        }
    }

    #[test]
    fn the_ids_of_a_file_are_told_by_user() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("ada", &format!("{MARK}\n{}", line("20300101000054Z")));
        write(UNMANAGED, KEY);
        write(".bob.0123456789abcdef", "half");
        let ids = [ID.to_owned()].into();
        assert_eq!(held(folder.path()).unwrap(), Held::from([("ada".to_owned(), ids)]));
    }
}
