//! The digests, against the same computed here from their description.

use chrono::{DateTime, Utc};
use ring::digest::{SHA256, digest};
use ssh_keys::{
    ChangeFields, Cursor, Digest, KeyId, Operation, OutOfOrder, PublicKey, SetDigest, UnixUser,
};

use crate::made::{line, one_of_each_type};

fn sha256(bytes: &[u8]) -> Digest {
    Digest::from_bytes(digest(&SHA256, bytes).as_ref().try_into().unwrap())
}

fn framed(fields: &[&str]) -> Vec<u8> {
    fields
        .iter()
        .flat_map(|field| [&(field.len() as u64).to_be_bytes()[..], field.as_bytes()].concat())
        .collect()
}

fn time(text: &str) -> Option<DateTime<Utc>> {
    Some(text.parse().unwrap())
}

#[test]
fn a_change_is_its_fields_with_their_lengths() {
    let key = line(&[b"ssh-ed25519", &[7; 32]]);
    let add = ChangeFields {
        seq: 12,
        operation: Operation::Add,
        unix_user: "alice",
        key_id: "key_00000000000000000000000000",
        member_id: "member-1",
        public_key: Some(&key),
        expires_at: time("2030-01-02T03:04:05.5+01:00"),
        enforce_by: None,
    };
    let id = "key_00000000000000000000000000";
    let domain = "site-control/ssh-change/1";
    let fields =
        [domain, "12", "add", "alice", id, "member-1", &key, "2030-01-02T02:04:05.500000Z", ""];
    assert_eq!(add.digest(), sha256(&framed(&fields)));
    let remove = ChangeFields {
        operation: Operation::Remove,
        public_key: None,
        expires_at: None,
        enforce_by: time("2030-01-02T03:04:05.123456789Z"),
        ..add
    };
    let fields =
        [domain, "12", "remove", "alice", id, "member-1", "", "", "2030-01-02T03:04:05.123456Z"];
    assert_eq!(remove.digest(), sha256(&framed(&fields)));
}

#[test]
fn every_field_of_a_change_counts() {
    let base = ChangeFields {
        seq: 1,
        operation: Operation::Add,
        unix_user: "a",
        key_id: "b",
        member_id: "c",
        public_key: None,
        expires_at: None,
        enforce_by: None,
    };
    let moment = time("2030-01-01T00:00:00Z");
    let others = [
        ChangeFields { seq: 2, ..base },
        ChangeFields { operation: Operation::Remove, ..base },
        ChangeFields { unix_user: "ab", ..base },
        ChangeFields { key_id: "bc", ..base },
        ChangeFields { unix_user: "", key_id: "ab", ..base },
        ChangeFields { member_id: "x", ..base },
        ChangeFields { public_key: Some("x"), ..base },
        ChangeFields { expires_at: moment, ..base },
        ChangeFields { enforce_by: moment, ..base },
    ];
    let digests: std::collections::HashSet<_> =
        others.iter().map(ChangeFields::digest).chain([base.digest()]).collect();
    assert_eq!(digests.len(), others.len() + 1);
}

#[test]
fn the_chain_is_over_the_chain_before_and_the_change() {
    let (one, two) = (sha256(b"one"), sha256(b"two"));
    let first = sha256(&[&[0; 32][..], one.as_bytes()].concat());
    let second = sha256(&[&first.as_bytes()[..], two.as_bytes()].concat());
    let cursor = Cursor::START.after(one).unwrap().after(two).unwrap();
    assert_eq!((cursor.seq(), cursor.digest()), (2, second));
    assert_eq!(cursor.to_string(), format!("2.{second}"));
}

#[test]
fn a_set_is_its_lines_and_takes_them_in_order_alone() {
    let keys: Vec<_> =
        one_of_each_type().iter().map(|line| PublicKey::parse(line).unwrap()).collect();
    let user = |text: &str| UnixUser::parse(text).unwrap();
    let id = |last: u8| KeyId::from_bytes([last; 16]);
    // As bytes of the lines: the space after a user stands before whatever a user may hold.
    let set = [("a", 2, 0), ("a", 3, 1), ("a-b", 1, 2), ("ab", 1, 0), ("b", 0, 3)];
    let mut digest = SetDigest::new();
    let mut lines = Vec::new();
    for (name, number, key) in set {
        digest.add(&user(name), &id(number), &keys[key]).unwrap();
        lines.push(format!("{name} {} {}\n", id(number).as_str(), keys[key]));
    }
    let mut sorted = lines.clone();
    sorted.sort_unstable();
    assert_eq!(lines, sorted);
    for (name, number) in
        [("b", 0), ("a", 9), ("", 0)].into_iter().filter(|(name, _)| !name.is_empty())
    {
        assert_eq!(digest.add(&user(name), &id(number), &keys[0]), Err(OutOfOrder));
    }
    assert_eq!(digest.finish(), sha256(lines.concat().as_bytes()));
    assert_eq!(SetDigest::new().finish(), sha256(b""));
}
