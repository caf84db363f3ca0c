//! Each rule of a key, broken alone.

use std::collections::HashSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use ssh_keys::{KeyRefusal, KeyType, KeyWarning, PublicKey};

use crate::made::{
    CURVES, EXPONENT, P256, P384, blob, integer, line, modulus, one_of_each_type, written,
};

const SK_ECDSA: &[u8] = b"sk-ecdsa-sha2-nistp256@openssh.com";
const SK_ED25519: &[u8] = b"sk-ssh-ed25519@openssh.com";

fn ed25519() -> String {
    line(&[b"ssh-ed25519", &[7; 32]])
}

fn rsa(exponent: &[u8], modulus: &[u8]) -> String {
    line(&[b"ssh-rsa", exponent, modulus])
}

fn cases() -> Vec<(&'static str, String, KeyRefusal)> {
    use KeyRefusal as R;
    let good = ed25519();
    let (_, base64) = good.split_once(' ').unwrap();
    let [x, y] = P256.generator();
    let (gx, gy) = (P256.coordinate(&x), P256.coordinate(&y));
    let point = P256.point(&x, &y);
    let p256 = |point: &[u8]| P256.line(point);
    let even = |bits| {
        let mut even = modulus(bits);
        *even.last_mut().unwrap() = 2;
        even
    };
    let long = |bytes: usize| [vec![1], vec![0; bytes - 2], vec![1]].concat();
    let big = |size: usize| "x".repeat(size - good.len() - 1);
    // 104 bytes: two are left over from groups of three, so that two bits are written for nothing.
    let loose = P256.line(&point);
    assert!(loose.ends_with('=') && !loose.ends_with("=="), "{loose}");
    let stripped = loose.trim_end_matches('=').to_owned();
    let bits = {
        let mut text = stripped.clone();
        let last = text.pop().unwrap();
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let place = alphabet.find(last).unwrap();
        text.push(alphabet.chars().nth(place + 1).unwrap());
        format!("{text}=")
    };
    vec![
        ("a line of one byte too many", format!("{good} {}", big(8193)), R::TooLong),
        ("no ASCII, of too many bytes", "é".repeat(4097), R::TooLong),
        ("a second line", format!("{good} me\n{good}"), R::NotPrintable),
        ("a line break at the end", format!("{good}\n"), R::NotPrintable),
        ("a carriage return", format!("{good} me\r"), R::NotPrintable),
        ("a tab in place of the space", good.replace(' ', "\t"), R::NotPrintable),
        ("a null byte", format!("{good} \0"), R::NotPrintable),
        ("a delete", format!("{good} \x7f"), R::NotPrintable),
        ("a comment that is no ASCII", format!("{good} jörg"), R::NotPrintable),
        ("nothing", String::new(), R::Type),
        ("a space first", format!(" {good}"), R::Type),
        ("the key alone", base64.to_owned(), R::Type),
        ("an option first", format!("restrict {good}"), R::Type),
        ("an option with the type in it", format!("command=\"ssh-ed25519 x\" {good}"), R::Type),
        ("an authority", format!("cert-authority {good}"), R::Type),
        ("a comment line", format!("# {good}"), R::Type),
        ("a type in capitals", good.replace("ssh-", "SSH-"), R::Type),
        ("a DSA key", line(&[b"ssh-dss", &[7; 32]]), R::Type),
        (
            "a certificate",
            line(&[b"ssh-ed25519-cert-v01@openssh.com", &[7; 32], &[7; 32]]),
            R::Type,
        ),
        ("a type of ssh-rsa's signatures", good.replace("ssh-ed25519", "rsa-sha2-256"), R::Type),
        ("a type alone", "ssh-ed25519".to_owned(), R::Missing),
        ("a type and a space", "ssh-ed25519 ".to_owned(), R::Missing),
        ("two spaces", good.replace(' ', "  "), R::Missing),
        ("no base64", good.replace("AAAA", "AA-_"), R::Base64),
        ("padding in the middle", good.replace("AAAA", "AA=="), R::Base64),
        ("one character", "ssh-ed25519 A".to_owned(), R::Base64),
        ("a quoted key", format!("ssh-ed25519 \"{base64}\""), R::Base64),
        ("the padding left out", stripped.clone(), R::NotCanonical),
        ("half of too much padding", format!("{stripped}=="), R::Base64),
        ("bits that no byte needs", bits, R::NotCanonical),
        ("the type of another key", good.replace("ssh-ed25519", "ssh-rsa"), R::InnerType),
        (
            "an inner type that the outer begins",
            written("ssh-rsa", &blob(&[b"ssh-rsa2", EXPONENT, &modulus(2048)])),
            R::InnerType,
        ),
        (
            "a security key's type before a plain key",
            good.replace("ssh-ed25519 ", "sk-ssh-ed25519@openssh.com "),
            R::InnerType,
        ),
        ("three bytes", written("ssh-ed25519", &[0, 0, 0]), R::Truncated),
        ("a field of 4 GiB", written("ssh-ed25519", &[255; 24]), R::Truncated),
        ("a key without its field", line(&[b"ssh-ed25519"]), R::Truncated),
        (
            "a key that is cut off",
            {
                let key = blob(&[b"ssh-ed25519", &[7; 32]]);
                written("ssh-ed25519", &key[..key.len() - 1])
            },
            R::Truncated,
        ),
        ("an exponent without a modulus", line(&[b"ssh-rsa", EXPONENT]), R::Truncated),
        ("a security key without its application", line(&[SK_ED25519, &[7; 32]]), R::Truncated),
        ("a key of 31 bytes", line(&[b"ssh-ed25519", &[7; 31]]), R::Ed25519Length),
        ("a key of 33 bytes", line(&[b"ssh-ed25519", &[7; 33]]), R::Ed25519Length),
        ("a key of no bytes", line(&[b"ssh-ed25519", b""]), R::Ed25519Length),
        ("a security key of 64 bytes", line(&[SK_ED25519, &[7; 64], b"ssh:"]), R::Ed25519Length),
        (
            "a curve of another type",
            line(&[b"ecdsa-sha2-nistp384", b"nistp256", &point]),
            R::CurveName,
        ),
        (
            "a security key on another curve",
            line(&[SK_ECDSA, b"nistp384", &point, b"ssh:"]),
            R::CurveName,
        ),
        ("no point", p256(b""), R::PointForm),
        ("the point at infinity", p256(&[0]), R::PointForm),
        ("a compressed point", p256(&[&[2][..], &gx].concat()), R::PointForm),
        ("a hybrid point", p256(&[&[7][..], &gx, &gy].concat()), R::PointForm),
        ("a point without its first byte", p256(&[&gx[..], &gy].concat()), R::PointForm),
        ("a point that is too long", p256(&[&point[..], &[0]].concat()), R::PointForm),
        ("a point that is too short", p256(&point[..64]), R::PointForm),
        (
            "a point of another curve",
            {
                let [x, y] = P384.generator();
                p256(&P384.point(&x, &y))
            },
            R::PointForm,
        ),
        ("a point beside the curve", p256(&P256.point(&x, &(&y + 1_u8))), R::PointOffCurve),
        ("zero and zero", p256(&[&[4][..], &[0; 64]].concat()), R::PointOffCurve),
        ("all ones", p256(&[&[4][..], &[255; 64]].concat()), R::PointOffCurve),
        (
            "a security key's point beside the curve",
            line(&[SK_ECDSA, b"nistp256", &P256.point(&y, &x), b"ssh:"]),
            R::PointOffCurve,
        ),
        ("a point over zero", p256(&P256.points_from(&0_u8.into())[0]), R::PointAtEdge),
        ("no application", line(&[SK_ED25519, &[7; 32], b""]), R::Application),
        ("an application with a space", line(&[SK_ED25519, &[7; 32], b"ssh: x"]), R::Application),
        ("an application with a null", line(&[SK_ED25519, &[7; 32], b"ssh:\0"]), R::Application),
        (
            "an application that is too long",
            line(&[SK_ED25519, &[7; 32], &[b's'; 256]]),
            R::Application,
        ),
        (
            "an application with a line break",
            line(&[SK_ECDSA, b"nistp256", &point, b"ssh:\n"]),
            R::Application,
        ),
        ("an exponent of no bytes", rsa(b"", &modulus(2048)), R::IntegerForm),
        ("an exponent of zero", rsa(&[0], &modulus(2048)), R::IntegerForm),
        ("an exponent with a zero in front", rsa(&[0, 1, 0, 1], &modulus(2048)), R::IntegerForm),
        ("a negative exponent", rsa(&[0x81, 0, 1], &modulus(2048)), R::IntegerForm),
        ("a negative modulus", rsa(EXPONENT, &modulus(2048)[1..]), R::IntegerForm),
        (
            "a modulus with two zeros in front",
            rsa(EXPONENT, &[&[0][..], &modulus(2048)].concat()),
            R::IntegerForm,
        ),
        ("2047 bits", rsa(EXPONENT, &modulus(2047)), R::RsaTooSmall { bits: 2047 }),
        ("1024 bits", rsa(EXPONENT, &modulus(1024)), R::RsaTooSmall { bits: 1024 }),
        ("one bit", rsa(EXPONENT, &[1]), R::RsaTooSmall { bits: 1 }),
        ("8193 bits", rsa(EXPONENT, &modulus(8193)), R::RsaTooLarge { bits: 8193 }),
        ("an even modulus", rsa(EXPONENT, &even(2048)), R::RsaEvenModulus),
        ("an exponent of 1", rsa(&[1], &modulus(2048)), R::RsaExponent),
        ("an exponent of 3", rsa(&[3], &modulus(2048)), R::RsaExponent),
        ("an exponent of 65535", rsa(&integer(&[255, 255]), &modulus(2048)), R::RsaExponent),
        ("an exponent of 65536", rsa(&[1, 0, 0], &modulus(2048)), R::RsaExponent),
        ("an exponent of 65538", rsa(&[1, 0, 2], &modulus(2048)), R::RsaExponent),
        ("an exponent of 65 bits", rsa(&long(9), &modulus(2048)), R::RsaExponentTooLarge),
        ("an exponent of 2101 bytes", rsa(&long(2101), &modulus(2048)), R::RsaExponentTooLarge),
        (
            "a byte behind the key",
            {
                let mut key = blob(&[b"ssh-ed25519", &[7; 32]]);
                key.push(0);
                written("ssh-ed25519", &key)
            },
            R::TrailingBytes,
        ),
        (
            "an application behind a plain key",
            { line(&[b"ssh-ed25519", &[7; 32], b"ssh:"]) },
            R::TrailingBytes,
        ),
        (
            "a field behind a modulus",
            { line(&[b"ssh-rsa", EXPONENT, &modulus(2048), b""]) },
            R::TrailingBytes,
        ),
        (
            "a field behind a point",
            { line(&[b"ecdsa-sha2-nistp256", b"nistp256", &point, b""]) },
            R::TrailingBytes,
        ),
        (
            "a field behind an application",
            { line(&[SK_ECDSA, b"nistp256", &point, b"ssh:", b"x"]) },
            R::TrailingBytes,
        ),
    ]
}

#[test]
fn each_rule_is_told_by_its_refusal() {
    for (what, line, refusal) in cases() {
        assert_eq!(PublicKey::parse(&line), Err(refusal), "{what}: {line:?}");
    }
}

#[test]
fn every_refusal_is_met_and_tells_nothing_of_the_line() {
    let cases = cases();
    let met: HashSet<_> =
        cases.iter().map(|(_, _, refusal)| std::mem::discriminant(refusal)).collect();
    assert_eq!(met.len(), 21);
    for (_, line, refusal) in cases {
        let told = refusal.to_string();
        for word in line.split(' ').filter(|word| KeyType::parse(word).is_none() && word.len() > 10)
        {
            assert!(!told.contains(word), "{told}");
        }
    }
}

#[test]
fn a_key_of_each_type_is_taken_and_printed_without_its_comment() {
    let lines = one_of_each_type();
    let kinds: HashSet<_> =
        lines.iter().map(|line| PublicKey::parse(line).unwrap().kind()).collect();
    assert_eq!(kinds, HashSet::from(KeyType::ALL));
    for line in lines {
        let key = PublicKey::parse(&line).unwrap();
        assert_eq!(key.to_string(), line);
        assert_eq!(line, format!("{} {}", key.kind().as_str(), key.base64()));
        for comment in [" ", " me@home", "  \"two  words\" # and; more ~", " AAAA ssh-rsa AAAA"] {
            assert_eq!(PublicKey::parse(&format!("{line}{comment}")).unwrap(), key, "{comment:?}");
        }
    }
}

/// Numbers of as many bits as a curve's coordinates.
fn far_from_the_edges(x: &num_bigint::BigUint) -> Vec<num_bigint::BigUint> {
    [1_u8, 2, 5, 77].map(|number| x + number).into()
}

#[test]
fn a_point_that_openssh_does_not_take_is_refused_though_it_lies_on_the_curve() {
    for curve in CURVES {
        let [x, _] = curve.generator();
        let half = num_bigint::BigUint::from(1_u8) << (x.bits().max(250) / 4);
        for small in [num_bigint::BigUint::from(0_u8), half] {
            for point in curve.points_from(&small) {
                let refusal = PublicKey::parse(&curve.line(&point)).unwrap_err();
                assert_eq!(refusal, KeyRefusal::PointAtEdge, "{}", curve.name);
            }
        }
        // Below the prime, but not below the order.
        let large = curve.prime() - 1000_u32;
        for point in curve.points_from(&large) {
            let refusal = PublicKey::parse(&curve.line(&point)).unwrap_err();
            assert_eq!(refusal, KeyRefusal::PointAtEdge, "{}", curve.name);
        }
    }
}

#[test]
fn both_points_over_many_numbers_are_taken_and_their_neighbours_are_not() {
    for curve in CURVES {
        let [x, y] = curve.generator();
        for number in far_from_the_edges(&x).into_iter().chain([x, y]) {
            for point in curve.points_from(&number) {
                PublicKey::parse(&curve.line(&point)).unwrap();
                for place in [1, curve.width, curve.width + 1, 2 * curve.width] {
                    let mut other = point.clone();
                    other[place] ^= 1;
                    let refusal = PublicKey::parse(&curve.line(&other)).unwrap_err();
                    assert_eq!(refusal, KeyRefusal::PointOffCurve, "{} {place}", curve.name);
                }
            }
        }
    }
}

#[test]
fn a_coordinate_that_is_not_below_the_prime_is_refused_though_it_says_the_same() {
    for curve in CURVES {
        // A point over a number so small that the prime can be added within the width.
        for point in curve.points_from(&num_bigint::BigUint::from(5_u8)) {
            let (x, y) = point[1..].split_at(curve.width);
            let x = num_bigint::BigUint::from_bytes_be(x) + curve.prime();
            let y = num_bigint::BigUint::from_bytes_be(y);
            let other = curve.line(&curve.point(&x, &y));
            assert_eq!(PublicKey::parse(&other), Err(KeyRefusal::PointOffCurve), "{}", curve.name);
        }
    }
}

#[test]
fn the_bounds_of_rsa_are_taken_and_a_short_modulus_is_warned_of() {
    for bits in [2048, 2049, 3071, 3072, 4096, 8191, 8192] {
        let key = PublicKey::parse(&rsa(EXPONENT, &modulus(bits))).unwrap();
        let warning = (bits < 3072).then_some(KeyWarning::ShortRsa { bits });
        assert_eq!(key.warning(), warning);
    }
    for exponent in [
        vec![1, 0, 1],
        vec![1, 0, 3],
        integer(&[0x80, 0, 1]),
        vec![1, 0, 0, 0, 1],
        integer(&[0xff; 8]),
    ] {
        PublicKey::parse(&rsa(&exponent, &modulus(2048))).unwrap();
    }
    for line in one_of_each_type().iter().filter(|line| !line.starts_with("ssh-rsa")) {
        assert_eq!(PublicKey::parse(line).unwrap().warning(), None);
    }
}

#[test]
fn the_longest_line_is_taken() {
    let good = ed25519();
    let longest = format!("{good} {}", "x".repeat(PublicKey::MAX_BYTES - good.len() - 1));
    assert_eq!(longest.len(), 8192);
    PublicKey::parse(&longest).unwrap();
    let application = line(&[SK_ED25519, &[7; 32], &[b's'; 255]]);
    PublicKey::parse(&application).unwrap();
}

#[test]
fn a_key_shows_its_fingerprint_in_place_of_itself() {
    let key = PublicKey::parse(&ed25519()).unwrap();
    let shown = format!("{key:?}");
    assert!(shown.contains(&key.fingerprint().to_string()) && !shown.contains(key.base64()));
    assert!(STANDARD.decode(key.base64()).is_ok());
}
