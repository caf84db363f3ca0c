//! Whatever comes, nothing panics, and what is taken is what was there.

use num_bigint::BigUint;
use proptest::prelude::*;
use ssh_keys::{AuthorizedLine, Cursor, Digest, KeyId, PublicKey, UnixUser};

use crate::made::{CURVES, EXPONENT, P256, blob, modulus, one_of_each_type, written};

/// Now and then another one.
fn mostly<T: Clone + std::fmt::Debug + 'static>(
    right: T,
    wrong: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<T> {
    prop_oneof![12 => Just(right), 1 => wrong].boxed()
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

fn application() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![9 => "[!-~]{1,40}".prop_map(String::into_bytes), 1 => bytes(300)]
}

/// A point of one of the curves, mostly on it.
fn point(curve: usize) -> impl Strategy<Value = Vec<u8>> {
    (bytes(70), any::<bool>(), mostly(None, (any::<prop::sample::Index>(), 0_u8..8).prop_map(Some)))
        .prop_map(move |(x, second, flipped)| {
            let mut point =
                CURVES[curve].points_from(&BigUint::from_bytes_be(&x))[usize::from(second)].clone();
            if let Some((place, bit)) = flipped {
                let place = place.index(point.len());
                point[place] ^= 1 << bit;
            }
            point
        })
}

/// An RSA modulus, mostly a good one.
fn rsa_modulus() -> impl Strategy<Value = Vec<u8>> {
    (2040_u64..2600, bytes(200), mostly(0_u8, 0..3_u8)).prop_map(|(bits, noise, broken)| {
        let number: BigUint =
            BigUint::from_bytes_be(&modulus(bits)) + (BigUint::from_bytes_be(&noise) << 1_u32);
        let digits = number.to_bytes_be();
        match broken {
            0 => crate::made::integer(&digits),
            1 => digits,
            _ => [&[0, 0], &digits[..]].concat(),
        }
    })
}

fn exponent() -> impl Strategy<Value = Vec<u8>> {
    let odd = prop_oneof![
        4 => Just(EXPONENT.to_vec()),
        1 => Just(vec![1, 0, 0, 0, 1]),
        1 => Just(vec![0, 0xff, 0xff, 0xff]),
        1 => Just(vec![0x7f, 0xff, 0xff]),
        1 => (1..2_200_usize).prop_map(|more| [vec![1], vec![0; more], vec![1]].concat()),
    ];
    prop_oneof![9 => odd, 1 => bytes(12)]
}

/// The fields of a key, mostly those of its type.
fn fields() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let kind = |text: &str| {
        mostly(text.as_bytes().to_vec(), "[a-z0-9@.-]{0,30}".prop_map(String::into_bytes))
    };
    let ecdsa = (0..3_usize).prop_flat_map(move |curve| {
        let name = mostly(CURVES[curve].name.as_bytes().to_vec(), bytes(9));
        (kind(CURVES[curve].kind), name, point(curve))
            .prop_map(|(kind, name, point)| vec![kind, name, point])
    });
    let ed25519 = || {
        mostly(vec![9; 32], bytes(40)).prop_flat_map(|key| {
            let length = key.len();
            prop::collection::vec(any::<u8>(), length)
        })
    };
    prop_oneof![
        (kind("ssh-ed25519"), ed25519()).prop_map(|(kind, key)| vec![kind, key]),
        (kind("sk-ssh-ed25519@openssh.com"), ed25519(), application())
            .prop_map(|(kind, key, application)| vec![kind, key, application]),
        ecdsa,
        (
            kind("sk-ecdsa-sha2-nistp256@openssh.com"),
            Just(P256.name.as_bytes().to_vec()),
            point(0),
            application()
        )
            .prop_map(|(kind, name, point, application)| vec![
                kind,
                name,
                point,
                application
            ]),
        (kind("ssh-rsa"), exponent(), rsa_modulus())
            .prop_map(|(kind, exponent, modulus)| vec![kind, exponent, modulus]),
    ]
}

/// Lines near the rules: the word before the key is mostly the first field.
pub(crate) fn lines() -> impl Strategy<Value = String> {
    let more = mostly(Vec::new(), bytes(6));
    let comment = prop_oneof![Just(String::new()), " [ -~]{0,30}"];
    let flipped = mostly(None, (any::<prop::sample::Index>(), any::<char>()).prop_map(Some));
    (fields(), more, comment, flipped).prop_map(|(fields, more, comment, flipped)| {
        let fields: Vec<_> = fields.iter().map(Vec::as_slice).collect();
        let key = [blob(&fields), more].concat();
        let line = format!("{}{comment}", written(&String::from_utf8_lossy(fields[0]), &key));
        match flipped {
            None => line,
            Some((place, other)) => {
                let mut characters: Vec<_> = line.chars().collect();
                let place = place.index(characters.len());
                characters[place] = other;
                characters.into_iter().collect()
            }
        }
    })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// What must hold of each line.
fn holds(line: &str) {
    let Ok(key) = PublicKey::parse(line) else { return };
    let text = key.to_string();
    assert!(line == text || line.starts_with(&format!("{text} ")), "{line:?} became {text:?}");
    assert_eq!(PublicKey::parse(&text).as_ref(), Ok(&key));
    assert!(text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
    assert_eq!(text.split(' ').count(), 2);
    // Another reader takes it as well, and finds the same key.
    let other = ssh_key::PublicKey::from_openssh(&text).unwrap();
    assert_eq!(other.algorithm().as_str(), key.kind().as_str());
    let fingerprint = other.fingerprint(ssh_key::HashAlg::Sha256);
    assert_eq!(fingerprint.to_string(), key.fingerprint().to_string());
    assert_eq!(other.to_openssh().unwrap(), text);
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn what_is_taken_is_written_again_as_it_was(line in lines()) {
        holds(&line);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>(), place in any::<prop::sample::Index>()) {
        holds(&text);
        for good in one_of_each_type() {
            // Cut off, and with something in the middle.
            let place = place.index(good.len());
            holds(&good[..place]);
            holds(&format!("{}{text}{}", &good[..place], &good[place..]));
        }
    }

    #[test]
    fn names_follow_their_rules(text in prop_oneof![
        "[a-z0-9_-]{0,34}", "key_[0-9a-z]{26}", "[a-zA-Z_.-]{0,5}", "systemd-[a-z]{0,8}", any::<String>(),
    ]) {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let named = (1..=32).contains(&text.chars().count()) && text.chars().all(inner)
            && text.starts_with(|c: char| c.is_ascii_lowercase());
        let reserved = text.starts_with("systemd-") || ssh_keys::RESERVED_USERS.contains(&text.as_str());
        let user = UnixUser::parse(&text);
        prop_assert_eq!(user.is_ok(), named && !reserved);
        if let Ok(user) = user { prop_assert_eq!(user.as_str(), &text) }
        if let Ok(id) = KeyId::parse(&text) { prop_assert_eq!(id.as_str(), &text) }
    }

    #[test]
    fn a_keys_id_spells_its_bytes_in_one_way(one in any::<[u8; 16]>(), other in any::<[u8; 16]>()) {
        let id = KeyId::from_bytes(one);
        prop_assert_eq!(KeyId::parse(id.as_str()), Ok(id.clone()));
        prop_assert_eq!(one == other, id == KeyId::from_bytes(other));
        let mut near = one;
        near[15] ^= 1;
        prop_assert_ne!(KeyId::from_bytes(near), id);
    }

    #[test]
    fn a_cursor_has_one_spelling(seq in any::<i64>(), bytes in any::<[u8; 32]>(), text in "[0-9+-]{0,21}\\.[0-9a-fA-F]{63,65}") {
        let cursor = Cursor::new(seq, Digest::from_bytes(bytes));
        prop_assert_eq!(cursor.is_ok(), seq > 0);
        if let Ok(cursor) = cursor {
            prop_assert_eq!(Cursor::parse(&cursor.to_string()), Ok(cursor));
        }
        if let Ok(cursor) = Cursor::parse(&text) { prop_assert_eq!(cursor.to_string(), text) }
    }

    #[test]
    fn a_line_for_sshd_prints_back(seconds in any::<i64>(), which in 0..7_usize, bytes in any::<[u8; 16]>(), text in any::<String>(), place in any::<prop::sample::Index>()) {
        let key = PublicKey::parse(&one_of_each_type()[which]).unwrap();
        let until = chrono::DateTime::from_timestamp(seconds % 300_000_000_000, 999_999_999).unwrap();
        let line = AuthorizedLine::new(key, KeyId::from_bytes(bytes), until);
        let written = line.to_string();
        prop_assert_eq!(AuthorizedLine::parse(&written), Ok(line));
        prop_assert!(written.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        let place = place.index(written.len() + 1);
        let other = format!("{}{text}{}", &written[..place], &written[place..]);
        if let Ok(read) = AuthorizedLine::parse(&other) { prop_assert_eq!(read.to_string(), other) }
    }
}
