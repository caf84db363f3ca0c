//! Users and ids.

use ssh_keys::{Cursor, Digest, KeyId, Operation, RESERVED_USERS, UnixUser};

#[test]
fn a_user_is_a_plain_name_that_is_not_the_systems() {
    for good in ["a", "alice", "a-b_9", "a-", "systemd", "rooted", "kube-1", &"a".repeat(32)] {
        assert_eq!(UnixUser::parse(good).unwrap().as_str(), good);
    }
    for wrong in [
        "",
        "-a",
        "9a",
        ".a",
        "a.b",
        "a/b",
        "..",
        "A",
        "a b",
        "a\n",
        "a$",
        "é",
        "a\0",
        &"a".repeat(33),
    ] {
        let told = UnixUser::parse(wrong).unwrap_err().to_string();
        assert!(told.starts_with("a user is 1 to 32"), "{wrong:?}: {told}");
    }
    for reserved in [
        "root",
        "daemon",
        "bin",
        "sys",
        "sync",
        "nobody",
        "sshd",
        "systemd-network",
        "systemd-",
        "_apt",
        "_",
    ] {
        let told = UnixUser::parse(reserved).unwrap_err().to_string();
        assert_eq!(told, "the user is reserved for the system", "{reserved}");
    }
}

#[test]
fn the_reserved_users_are_in_order_and_each_would_be_a_user_else() {
    assert!(RESERVED_USERS.is_sorted_by(|one, next| one < next), "in order, each once");
    for user in RESERVED_USERS {
        assert!(UnixUser::parse(&format!("{user}x")).is_ok(), "{user}");
        assert!(UnixUser::parse(user).is_err(), "{user}");
    }
}

#[test]
fn the_users_of_this_machine_that_belong_to_the_system_are_reserved() {
    let text = std::fs::read_to_string("/etc/passwd").unwrap();
    let mut seen = 0;
    for line in text.lines() {
        let fields: Vec<_> = line.split(':').collect();
        let number: u32 = fields[2].parse().unwrap();
        // Debian's own numbers; those from 100 to 999 are given out to whatever is installed.
        if number < 100 || number == 65_534 {
            seen += 1;
            assert!(UnixUser::parse(fields[0]).is_err(), "{}", fields[0]);
        }
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn a_keys_id_has_one_spelling() {
    let id = KeyId::from_bytes([255; 16]);
    assert_eq!(id.as_str(), "key_zzzzzzzzzzzzzzzzzzzzzzzzzw");
    let id = KeyId::from_bytes(*b"0123456789abcdef");
    assert_eq!(KeyId::parse(id.as_str()).unwrap(), id);
    let good = "key_0123456789abcdefghjkmnpqr0";
    assert_eq!(KeyId::parse(good).unwrap().as_str(), good);
    for wrong in [
        "",
        "key_",
        "0123456789abcdefghjkmnpqr0",
        "Key_0123456789abcdefghjkmnpqr0",
        "key_0123456789abcdefghjkmnpqr1",
        "key_0123456789abcdefghjkmnpqrz",
        "key_0123456789abcdefghjkmnpq0",
        "key_0123456789abcdefghjkmnpqrs0",
        "key_0123456789ABCDEFGHJKMNPQR0",
        "key_i123456789abcdefghjkmnpqr0",
        "key_0123456789abcdefghjkmnpqr0 ",
        "key_0123456789abcdefghjkmnpq\u{e9}0",
    ] {
        assert!(KeyId::parse(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_cursor_is_read_in_its_one_spelling() {
    let zero = "0".repeat(64);
    let one = format!("{}1", "0".repeat(63));
    assert_eq!(Cursor::parse(&format!("0.{zero}")).unwrap(), Cursor::START);
    assert_eq!(Cursor::START.to_string(), format!("0.{zero}"));
    for good in [format!("1.{one}"), format!("9223372036854775807.{zero}")] {
        assert_eq!(Cursor::parse(&good).unwrap().to_string(), good);
    }
    for wrong in [
        String::new(),
        ".".to_owned(),
        format!("0.{one}"),
        format!("01.{one}"),
        format!("-1.{one}"),
        format!("+1.{one}"),
        format!(".{one}"),
        format!("9223372036854775808.{one}"),
        format!("1{one}"),
        format!("1.{}A", "0".repeat(63)),
        format!("1.{}", &one[1..]),
        format!("1.{one}0"),
        format!("1.{one} "),
    ] {
        assert!(Cursor::parse(&wrong).is_err(), "{wrong:?}");
    }
    let last = Cursor::new(i64::MAX, Digest::ZERO).unwrap();
    assert_eq!(last.after(Digest::ZERO), None);
}

#[test]
fn words_are_exactly_those_of_the_protocol() {
    for operation in [Operation::Add, Operation::Remove] {
        assert_eq!(Operation::parse(operation.as_str()), Ok(operation));
    }
    assert_eq!((Operation::Add.as_str(), Operation::Remove.as_str()), ("add", "remove"));
    assert!(Operation::parse("Add").is_err() && Operation::parse("").is_err());
}
