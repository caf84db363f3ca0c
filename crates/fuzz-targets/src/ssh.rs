//! SSH access: keys of members and the names around them.

use chrono::DateTime;
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
    if let Ok(operation) = Operation::parse(text) {
        crate::taken();
        assert_eq!(operation.as_str(), text);
    }
}
