//! What parses bytes from outside: it takes exactly its rule, and never panics.

use proptest::prelude::*;
use serde_json::value::RawValue;
use site_coordination::{
    CommandId, CommandKind, Environment, Generation, Invalid, JsonText, NewCommand, Outcome,
    ProducerKey, RunId, Seq, SiteId, Stream,
};

use crate::support::{SLURM, digest_of_fields, sha256, stream};

/// Texts near the rules: mostly the characters that are allowed somewhere, some that never are.
fn near() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9._-]{0,70}",
        "[a-z][a-z0-9._-]{0,70}",
        "cmd_[0-9a-z]{30,34}",
        "[!-~]{0,210}",
        "[0-9]{0,21}",
        "[+-]?0{0,3}[0-9]{1,3}",
        "[ -~\\t\\n\u{0}é٣]{0,20}",
        any::<String>(),
    ]
}

fn agrees<T>(parsed: Result<T, Invalid>, rule: bool, text: fn(&T) -> &str, input: &str) {
    match parsed {
        Ok(value) => {
            assert!(rule, "{input:?} was taken");
            assert_eq!(text(&value), input);
        }
        Err(_) => assert!(!rule, "{input:?} was refused"),
    }
}

fn only(text: &str, allowed: &str) -> bool {
    text.chars().all(|character| allowed.contains(character))
}

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn names_follow_their_rules(text in near()) {
        let first = text.chars().next().map(String::from).unwrap_or_default();
        let length = text.chars().count();
        let alphanumeric = [LOWER, UPPER, DIGITS].concat();
        let site = (1..=64).contains(&length)
            && only(&first, &alphanumeric)
            && only(&text, &format!("{alphanumeric}._-"));
        agrees(SiteId::parse(&text), site, SiteId::as_str, &text);
        let kind = (1..=64).contains(&length)
            && only(&first, LOWER)
            && only(&text, &format!("{LOWER}{DIGITS}._-"));
        agrees(CommandKind::parse(&text), kind, CommandKind::as_str, &text);
        let visible = text.chars().all(|character| ('!'..='~').contains(&character));
        let key = visible && (1..=200).contains(&length);
        agrees(ProducerKey::parse(&text), key, ProducerKey::as_str, &text);
        let run = visible && (1..=128).contains(&length);
        agrees(RunId::parse(&text), run, RunId::as_str, &text);
        let id = length == 36
            && text.strip_prefix("cmd_").is_some_and(|rest| {
                only(rest, &format!("{DIGITS}{LOWER}")) && !rest.contains(['i', 'l', 'o', 'u'])
            });
        agrees(CommandId::parse(&text), id, CommandId::as_str, &text);
    }

    #[test]
    fn numbers_are_plain_decimals_that_fit(text in near()) {
        let number: Option<i64> = text.parse().ok().filter(|number: &i64| number.to_string() == text);
        prop_assert_eq!(Seq::parse(&text).ok().map(Seq::get), number.filter(|n| *n >= 0));
        prop_assert_eq!(
            Generation::parse(&text).ok().map(Generation::get), number.filter(|n| *n >= 1));
    }

    #[test]
    fn a_text_is_taken_as_json_exactly_when_it_is_json(text in json_like()) {
        let parsed = JsonText::parse(&text);
        prop_assert_eq!(parsed.is_ok(), serde_json::from_str::<Box<RawValue>>(&text).is_ok());
        if let Ok(json) = parsed {
            // Only outer white space is gone, and taking it again changes nothing.
            let inner = text.trim_matches([' ', '\t', '\r', '\n']);
            prop_assert_eq!(json.as_str(), inner);
            prop_assert_eq!(json.digest(), sha256(inner.as_bytes()));
            prop_assert!(JsonText::parse(json.as_str()).unwrap() == json);
            let length = inner.len();
            prop_assert_eq!(format!("{json:?}"), format!("JsonText({length} bytes)"));
        }
    }

    #[test]
    fn a_commands_digest_is_that_of_its_fields(
        key in "[!-~]{1,200}", kind in "[a-z][a-z0-9._-]{0,63}",
        run in proptest::option::of("[!-~]{1,128}"), not_after in proptest::option::of(moment()),
        body in json_like(),
    ) {
        let Ok(body) = JsonText::parse(&body) else { return Ok(()) };
        let key = ProducerKey::parse(&key).unwrap();
        let id = CommandId::derive(&stream("north-1", SLURM), &key);
        let command = NewCommand {
            key,
            kind: CommandKind::parse(&kind).unwrap(),
            run_id: run.as_deref().map(|run| RunId::parse(run).unwrap()),
            not_after: not_after.as_deref().map(|text| text.parse().unwrap()),
            body: body.clone(),
        };
        let expected = digest_of_fields(&[
            ("commandId", Some(id.as_str())),
            ("kind", Some(&kind)),
            ("runId", run.as_deref()),
            ("notAfter", not_after.as_deref()),
            ("body", Some(body.as_str())),
        ]);
        prop_assert_eq!(command.digest(&id), expected);
    }

    #[test]
    fn a_character_that_moves_between_the_parts_of_an_id_gives_another_id(
        site in "[a-z0-9]{2,20}", key in "[a-z0-9]{1,20}", environment in 0..2usize,
    ) {
        let environment = Environment::ALL[environment];
        let id = |site: &str, environment, key: &str| {
            let site = SiteId::parse(site).unwrap();
            CommandId::derive(&Stream { site, environment }, &ProducerKey::parse(key).unwrap())
        };
        let one = id(&site, environment, &key);
        prop_assert_eq!(CommandId::parse(one.as_str()).unwrap(), one.clone());
        prop_assert_eq!(id(&site, environment, &key), one.clone());
        let (shorter, moved) = site.split_at(site.len() - 1);
        prop_assert_ne!(id(shorter, environment, &format!("{moved}{key}")), one.clone());
        for other in Environment::ALL.into_iter().filter(|other| *other != environment) {
            prop_assert_ne!(id(&site, other, &key), one.clone());
        }
    }
}

/// A moment in the one spelling that a digest has for it.
fn moment() -> impl Strategy<Value = String> {
    (1970..=9999i32, 1..=12u32, 1..=28u32, 0..24u32, 0..60u32, 0..60u32, 0..1_000_000u32).prop_map(
        |(year, month, day, hour, minute, second, micros)| {
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
        },
    )
}

/// JSON, and texts that nearly are: white space, cuts and exchanged characters included.
fn json_like() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        "-?[0-9]{1,30}(\\.[0-9]{1,10})?([eE][+-]?[0-9]{1,4})?",
        "\"[ -!#-\\[\\]-~é😀]{0,12}\"",
        "\"\\\\u[0-9a-fA-F]{4}\"",
    ];
    let json = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(" ,"))),
            proptest::collection::vec(("[a-c]{0,2}", inner), 0..4).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\" : {value}")).collect();
                format!("{{{}}}", members.join(",\n"))
            }),
        ]
    });
    let spaced = ("[ \\t\\r\\n\u{a0}]{0,2}", json, "[ \\t\\r\\n\u{b}]{0,2}")
        .prop_map(|(before, json, after)| format!("{before}{json}{after}"));
    (spaced, any::<Option<(prop::sample::Index, char)>>()).prop_map(|(text, broken)| {
        let Some((place, character)) = broken else { return text };
        let mut characters: Vec<char> = text.chars().collect();
        let place = place.index(characters.len());
        characters[place] = character;
        characters.into_iter().collect()
    })
}

#[test]
fn words_are_exactly_those_of_the_protocol() {
    for word in ["k8s", "slurm"] {
        assert_eq!(Environment::parse(word).unwrap().as_str(), word);
    }
    for word in ["succeeded", "failed", "rejected"] {
        assert_eq!(Outcome::parse(word).unwrap().as_str(), word);
    }
    for wrong in ["", "K8s", "slurm ", "succeeded\0", "done"] {
        assert!(Environment::parse(wrong).is_err() && Outcome::parse(wrong).is_err());
    }
}

#[test]
fn a_json_text_of_one_mib_is_taken_and_one_byte_more_is_not() {
    let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    assert_eq!(JsonText::parse(&text(1_048_576)).unwrap().as_str().len(), 1_048_576);
    assert!(JsonText::parse(&text(1_048_577)).is_err());
    // White space around it does not count.
    JsonText::parse(&format!("  {}\n", text(1_048_576))).unwrap();
}

#[test]
fn json_that_nests_without_end_is_refused_without_a_crash() {
    assert!(JsonText::parse(&"[".repeat(1_048_576)).is_err());
    let nested = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat();
    assert!(JsonText::parse(&nested(400_000)).is_err());
    JsonText::parse(&nested(128)).unwrap();
    assert!(JsonText::parse(&nested(129)).is_err());
    assert!(JsonText::parse(&format!("[{}]", "{\"a\":[".repeat(65) + &"]}".repeat(65))).is_err());
}

#[test]
fn brackets_that_are_text_or_beside_each_other_nest_nothing() {
    let brackets = "[{".repeat(200);
    JsonText::parse(&format!(r#"{{"\"{brackets}":"\\\"{brackets}","b":"{brackets}\\"}}"#)).unwrap();
    JsonText::parse(&format!("[{}0]", "[{}],".repeat(200))).unwrap();
}
