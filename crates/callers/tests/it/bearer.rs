use std::collections::HashSet;

use callers::{BearerId, Malformed, NativeBearer};
use proptest::prelude::*;
use ring::digest::{SHA256, digest};

use crate::support::{BEARER, bearer};

#[test]
fn a_bearer_is_read_as_it_is_written() {
    let made = bearer();
    let read = NativeBearer::parse(made.expose()).unwrap();
    assert_eq!(read.expose(), made.expose());
    assert_eq!(read.id(), made.id());
    assert_eq!(read.digest(), made.digest());
}

#[test]
fn two_bearers_share_neither_id_nor_secret() {
    let halves: HashSet<String> = (0..100)
        .flat_map(|_| {
            let text = bearer().expose().to_owned();
            text.split(['_', '.']).skip(1).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(halves.len(), 200);
}

#[test]
fn other_spellings_are_refused() {
    assert!(NativeBearer::parse(BEARER).is_ok());
    let (id, secret) = BEARER.strip_prefix("scnb_").unwrap().split_once('.').unwrap();
    for text in [
        String::new(),
        "scnb_".to_owned(),
        format!("scnb_{id}"),
        format!("scnb_{id}."),
        format!("scnb_.{secret}"),
        format!("{id}.{secret}"),
        format!("SCNB_{id}.{secret}"),
        format!("bcjt_{id}.{secret}"),
        format!("scnb_{secret}.{id}"),
        format!("scnb_{}.{secret}", id.to_uppercase()),
        format!("scnb_{id}.{}", secret.to_uppercase()),
        format!("scnb_{id}.{secret}."),
        format!("scnb_{id}.{secret}0"),
        format!("scnb_{id}.{}", &secret[1..]),
        format!("scnb_{}.{secret}", &id[1..]),
        format!("scnb_{}.{secret}", id.replace('0', "o")),
        format!("scnb_{id}.{}", secret.replace('0', "O")),
        format!("scnb_{}.{secret}", id.replace('1', "i")),
        format!("scnb_{}.{secret}", id.replace('1', "l")),
        format!("scnb_{id}.{}", secret.replace('v', "u")),
        format!("scnb_{id}.{}", secret.replace('0', "-")),
        format!("scnb_{id}.{}ä", &secret[2..]),
        format!(" scnb_{id}.{secret}"),
        format!("scnb_{id}.{secret}\n"),
    ] {
        assert_eq!(NativeBearer::parse(&text).err(), Some(Malformed), "{text:?}");
    }
}

#[test]
fn the_digest_is_the_documented_one() {
    let read = NativeBearer::parse(BEARER).unwrap();
    let expected = digest(&SHA256, format!("site-control/native-bearer\0{BEARER}").as_bytes());
    assert_eq!(read.digest(), expected.as_ref());
}

#[test]
fn a_bearer_does_not_tell_its_secret() {
    let made = bearer();
    let secret = made.expose().split('.').nth(1).unwrap();
    let shown = format!("{made:?} {:?} {}", made.id(), made.id());
    assert!(shown.contains(made.id().as_str()));
    assert!(!shown.contains(secret), "{shown}");
}

proptest! {
    #[test]
    fn the_parser_accepts_exactly_what_it_prints(
        text in "scnb_[0-9a-hjkmnp-tv-zilouA-Z]{15,17}\\.[0-9a-hjkmnp-tv-zilouA-Z]{31,33}"
    ) {
        let in_alphabet = |c: char| c.is_ascii_digit()
            || (c.is_ascii_lowercase() && !"ilou".contains(c));
        let (id, secret) = text[5..].split_once('.').unwrap();
        let right = id.len() == 16 && secret.len() == 32
            && id.chars().chain(secret.chars()).all(in_alphabet);
        let read = NativeBearer::parse(&text);
        prop_assert_eq!(read.is_ok(), right);
        if let Ok(read) = read {
            prop_assert_eq!(read.expose(), &text);
        }
    }

    #[test]
    fn every_well_formed_text_is_read_back(
        text in "scnb_[0-9a-hjkmnp-tv-z]{16}\\.[0-9a-hjkmnp-tv-z]{32}"
    ) {
        let read = NativeBearer::parse(&text).unwrap();
        prop_assert_eq!(read.expose(), &text);
    }

    #[test]
    fn any_text_is_refused_or_read_without_a_panic(text in any::<String>(), after in "scnb_.{0,60}") {
        let _ = NativeBearer::parse(&text);
        let _ = NativeBearer::parse(&after);
        let _ = BearerId::parse(&text);
    }
}
