//! SSH access: keys of members and the names around them.

use chrono::DateTime;
use serde_json::Value;
use site_admin::parsers::key_line as line;
use ssh_access::{AccountId, Failure, KeyEnd, MemberId, SiteId, Window};
use ssh_keys::{
    AuthorizedLine, Cursor, Digest, KeyId, MANAGED_MARK, Operation, PublicKey, UnixUser,
};

use crate::{SECRET, assert_quiet, with_secrets};

/// What is taken is written again as it was, another reader finds the same key in it, and the line of
/// sshd's file is one line that reads back as itself. A refusal tells nothing of the text.
pub(crate) fn ssh_key(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    match PublicKey::parse(text) {
        Ok(key) => {
            crate::taken();
            let written = key.to_string();
            assert!(text == written || text.starts_with(&format!("{written} ")), "{text:?}");
            assert_eq!(PublicKey::parse(&written).as_ref(), Ok(&key));
            let other = ssh_key::PublicKey::from_openssh(&written).unwrap();
            let fingerprint = other.fingerprint(ssh_key::HashAlg::Sha256).to_string();
            assert_eq!(fingerprint, key.fingerprint().to_string());
            assert_eq!(other.to_openssh().unwrap(), written);

            let until = DateTime::from_timestamp(1_900_000_000, 0).unwrap();
            let line = AuthorizedLine::new(key, KeyId::from_bytes([5; 16]), until);
            let file = line.to_string();
            assert!(file.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{file:?}");
            assert!(file.starts_with("expiry-time=\"20300317174640Z\",restrict,pty "), "{file}");
            assert_eq!(AuthorizedLine::parse(&file), Ok(line));
        }
        Err(refusal) => assert_quiet(&refusal.to_string(), SECRET),
    }
    if let Ok(line) = AuthorizedLine::parse(text) {
        crate::taken();
        assert_eq!(line.to_string(), text);
        assert_ne!(text, MANAGED_MARK);
        let bare = line.key().to_string();
        assert!(text.ends_with(&format!(" {bare} {}", line.id().as_str())), "{text:?}");
    }
}

/// What is taken prints back; a user is the name of a file that hides nothing and leads nowhere.
pub(crate) fn ssh_names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let text = text.strip_suffix('\n').unwrap_or(text);
    if let Ok(user) = UnixUser::parse(text) {
        crate::taken();
        assert!(user.as_str() == text && (1..=32).contains(&text.len()));
        assert!(!text.contains(['/', '.', ' ', '\0']) && !text.starts_with(['-', '_']), "{text:?}");
        assert!(!text.starts_with("systemd-") && text != "root" && text != "sshd", "{text:?}");
        // Who may be bound to a native account has a name by the same rule, apart from a dollar sign
        // at the end, and root alone is refused there.
        assert!(resource_provisioning::UnixUser::parse(text).is_ok(), "{text:?}");
    }
    if let Ok(id) = KeyId::parse(text) {
        crate::taken();
        assert!(id.as_str() == text && text.len() == 30);
        let stands = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        assert!(stands, "{text:?}");
    }
    if let Ok(cursor) = Cursor::parse(text) {
        crate::taken();
        assert_eq!(cursor.to_string(), text);
        assert_eq!(Cursor::new(cursor.seq(), cursor.digest()), Ok(cursor));
        assert!(cursor.seq() >= 0 && (cursor.seq() > 0 || cursor == Cursor::START));
    }
    if let Ok(digest) = Digest::parse(text) {
        crate::taken();
        assert_eq!(digest.to_string(), text);
        assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    }
    names_of_the_context(text);
    if let Ok(operation) = Operation::parse(text) {
        crate::taken();
        assert_eq!(operation.as_str(), text);
    }
}

/// Who names the same thing elsewhere reads its name alike.
fn names_of_the_context(text: &str) {
    let site = SiteId::parse(text).ok();
    assert_eq!(site.is_some(), site_coordination::SiteId::parse(text).is_ok());
    assert!(site.is_none_or(|site| site.as_str() == text));
    let member = MemberId::parse(text).ok();
    assert_eq!(member.is_some(), execution_core::MemberId::parse(text).is_ok());
    assert!(member.is_none_or(|member| member.as_str() == text));
    let number: Option<i64> = text.parse().ok().filter(|number: &i64| number.to_string() == text);
    assert_eq!(AccountId::parse(text).ok().map(AccountId::get), number.filter(|n| *n >= 1));
    let window = Window::parse(text).ok().map(Window::duration);
    let seconds = number.filter(|n| (60..=86_400).contains(n)).and_then(|n| u64::try_from(n).ok());
    assert_eq!(window.map(|window| window.as_secs()), seconds);
    if let Ok(end) = KeyEnd::parse(text) {
        crate::taken();
        assert_eq!(KeyEnd::parse(&end.time().to_rfc3339()), Ok(end));
    }
    let user = UnixUser::parse("alice").unwrap();
    if let Ok(failure) = Failure::new(user, KeyId::from_bytes([0; 16]), text) {
        assert_eq!(failure.reason(), text);
        assert!(text.len() <= 200 && !text.chars().any(char::is_control), "{text:?}");
    }
}

/// A line that is taken says what another reader finds in it; a refusal is short, printable, and tells
/// nothing of the line.
pub(crate) fn key_line(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    match line::parse(text) {
        Ok(new) => {
            crate::taken();
            let read: Value = serde_json::from_str(text).unwrap();
            let fields = read.as_object().unwrap();
            let known = ["memberId", "publicKey", "expiresAt"];
            assert!(fields.keys().all(|field| known.contains(&field.as_str())), "{text:?}");
            assert_eq!(read["memberId"], new.member.as_str());
            let key = PublicKey::parse(read["publicKey"].as_str().unwrap()).unwrap();
            assert_eq!(key, new.key);
            let end = read["expiresAt"].as_str().map(|end| KeyEnd::parse(end).unwrap());
            assert_eq!(end, new.end);
        }
        Err(told) => {
            assert_quiet(&told, SECRET);
            assert!(told.len() <= 512 && !told.chars().any(char::is_control), "{told:?}");
        }
    }
}
