//! The line of a key for sshd.

use chrono::{DateTime, Utc};
use ssh_keys::{AuthorizedLine, KeyId, MANAGED_MARK, PublicKey};

use crate::made::line;

fn written(until: &str) -> String {
    let key = PublicKey::parse(&line(&[b"ssh-ed25519", &[0; 32]])).unwrap();
    let until: DateTime<Utc> = until.parse().unwrap();
    AuthorizedLine::new(key, KeyId::from_bytes([0; 16]), until).to_string()
}

#[test]
fn it_is_exactly_this() {
    assert_eq!(
        written("2030-01-02T03:04:05.999999Z"),
        "expiry-time=\"20300102030405Z\",restrict,pty ssh-ed25519 \
         AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA \
         key_00000000000000000000000000"
    );
}

#[test]
fn a_moment_that_sshd_can_not_read_is_the_nearest_that_it_can() {
    for (until, time) in [
        ("1969-12-31T23:59:59.5Z", "19700101000000Z"),
        ("-0001-01-01T00:00:00Z", "19700101000000Z"),
        ("9999-12-31T23:59:59.9Z", "99991231235959Z"),
        ("+10000-01-01T00:00:00Z", "99991231235959Z"),
        ("2030-01-02T03:04:05-01:00", "20300102040405Z"),
    ] {
        let line = written(until);
        assert!(line.starts_with(&format!("expiry-time=\"{time}\",")), "{until}: {line}");
    }
}

#[test]
fn only_what_was_written_is_read() {
    let good = written("2030-01-02T03:04:05Z");
    let read = AuthorizedLine::parse(&good).unwrap();
    assert_eq!(read.to_string(), good);
    assert_eq!(read.until().to_rfc3339(), "2030-01-02T03:04:05+00:00");
    assert_eq!(read.id().as_str(), "key_00000000000000000000000000");
    assert_eq!(read.key().to_string(), line(&[b"ssh-ed25519", &[0; 32]]));
    for wrong in [
        String::new(),
        MANAGED_MARK.to_owned(),
        format!("{good} "),
        format!(" {good}"),
        format!("{good}\n"),
        format!("# {good}"),
        good.replace("restrict,pty ", ""),
        good.replace("restrict,pty", "restrict"),
        good.replace("restrict,pty", "restrict,pty,agent-forwarding"),
        good.replace("20300102", "20300230"),
        good.replace("030405Z", "030460Z"),
        good.replace("030405Z", "030405"),
        good.replace(" key_", " a comment key_"),
        good.replace(" key_00000000000000000000000000", ""),
        good.replace("key_0", "key_O"),
        good.replace("expiry-time=", "Expiry-Time="),
    ] {
        assert_ne!(wrong, good);
        assert!(AuthorizedLine::parse(&wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_mark_is_a_comment_of_one_line() {
    assert!(MANAGED_MARK.starts_with("# ") && !MANAGED_MARK.contains('\n'));
}
