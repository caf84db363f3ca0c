//! What parses names from outside: it takes exactly its rule, prints back, and never panics.

use execution_core::{
    Action, AttemptNumber, Commit, Deadline, Environment, GitRef, Invalid, Material, MemberId,
    ProjectId, RepositoryInstance, RepositoryPath, RepositoryProject, RunId, SiteId,
};
use proptest::prelude::*;
use serde_json::value::RawValue;

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";

/// Texts near the rules: mostly the characters that are allowed somewhere, some that never are.
fn near() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9._~:-]{0,140}",
        "[!-~]{0,260}",
        "[a-z0-9._-]{0,5}(/[a-zA-Z0-9._-]{0,5}){0,3}",
        "[a-z]{0,4}(/[a-z]{1,3})?(\\.\\.|@\\{|\\.lock|\\.git|\\.atom|\\.|/|//|-|@|é| |\u{85})?[a-z]{0,2}",
        "[0-9]{0,21}",
        "[+-]?0{0,3}[0-9]{1,4}",
        "[0-9a-f]{38,42}",
        "[0-9a-fA-F]{63,65}",
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

fn only(text: &str, allowed: &[&str]) -> bool {
    text.chars().all(|character| allowed.iter().any(|set| set.contains(character)))
}

fn named(text: &str, longest: usize, more: &str) -> bool {
    let first: String = text.chars().take(1).collect();
    (1..=longest).contains(&text.chars().count())
        && only(&first, &[LOWER, UPPER, DIGITS])
        && only(text, &[LOWER, UPPER, DIGITS, more])
}

fn visible(text: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.chars().count()) && text.chars().all(|c| ('!'..='~').contains(&c))
}

/// The rules of a path, segment by segment.
fn path(text: &str) -> bool {
    let segments: Vec<&str> = text.split('/').collect();
    text.len() <= 1024
        && segments.len() >= 2
        && segments.iter().all(|part| {
            (1..=255).contains(&part.len())
                && only(part, &[LOWER, UPPER, DIGITS, "._-"])
                && !part.starts_with(['.', '-'])
                && !(part.ends_with('.') || part.ends_with(".git") || part.ends_with(".atom"))
        })
}

/// The rules of `git check-ref-format`, in the order of its manual, and ours.
fn reference(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    let one = parts.iter().all(|part| !part.starts_with('.') && !part.ends_with(".lock"));
    let three = !text.contains("..");
    let four = !text.chars().any(|c| c < ' ' || c == '\u{7f}' || " ~^:".contains(c));
    let five = !text.contains(['?', '*', '[']);
    let six = !text.starts_with('/') && !text.ends_with('/') && !text.contains("//");
    let seven = !text.ends_with('.');
    let eight = !text.contains("@{");
    let nine = text != "@";
    let ten = !text.contains('\\');
    let branch = !text.starts_with('-') && text != "HEAD";
    let ours = (1..=255).contains(&text.len())
        && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    one && three && four && five && six && seven && eight && nine && ten && branch && ours
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn names_follow_their_rules(text in near()) {
        agrees(RunId::parse(&text), named(&text, 128, "._~:-"), RunId::as_str, &text);
        agrees(SiteId::parse(&text), named(&text, 64, "._-"), SiteId::as_str, &text);
        let instance = named(&text, 64, "._-");
        agrees(RepositoryInstance::parse(&text), instance, RepositoryInstance::as_str, &text);
        agrees(ProjectId::parse(&text), visible(&text, 128), ProjectId::as_str, &text);
        agrees(MemberId::parse(&text), visible(&text, 255), MemberId::as_str, &text);
        agrees(RepositoryPath::parse(&text), path(&text), RepositoryPath::as_str, &text);
        agrees(GitRef::parse(&text), reference(&text), GitRef::as_str, &text);
        let commit = [40, 64].contains(&text.chars().count()) && only(&text, &[DIGITS, "abcdef"]);
        agrees(Commit::parse(&text), commit, Commit::as_str, &text);
    }

    #[test]
    fn numbers_are_plain_decimals_within_their_range(text in near()) {
        let number: Option<i64> = text.parse().ok().filter(|number: &i64| number.to_string() == text);
        let attempt = AttemptNumber::parse(&text).ok().map(|attempt| i64::from(attempt.get()));
        prop_assert_eq!(attempt, number.filter(|n| (1..=1000).contains(n)));
        let project = RepositoryProject::parse(&text).ok().map(RepositoryProject::get);
        prop_assert_eq!(project, number.filter(|n| *n >= 1));
    }

    #[test]
    fn material_is_json_and_kept_to_the_byte(text in json_like()) {
        let parsed = Material::parse(&text);
        prop_assert_eq!(parsed.is_ok(), serde_json::from_str::<Box<RawValue>>(&text).is_ok());
        if let Ok(material) = parsed {
            let inner = text.trim_matches([' ', '\t', '\r', '\n']);
            prop_assert_eq!(material.as_str(), inner);
            prop_assert_eq!(format!("{material:?}"), format!("Material({} bytes)", inner.len()));
            prop_assert_eq!(material.into_string(), inner);
        }
    }
}

/// JSON, and texts that nearly are.
fn json_like() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        "-?[0-9]{1,30}(\\.[0-9]{1,10})?([eE][+-]?[0-9]{1,4})?",
        "\"[ -!#-\\[\\]-~é😀]{0,12}\"",
        "\"\\\\[u\"\\\\n]([0-9a-fA-F]{4})?\"",
    ];
    let json = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec(inner, 0..4).prop_map(|values| {
                let members: Vec<_> = values.iter().map(|v| format!("\"a\" : {v}")).collect();
                format!("{{{}}}", members.join(",\n"))
            }),
        ]
    });
    ("[ \\t\\r\\n\u{a0}]{0,2}", json, "[ \\t\\r\\n\u{b}x]{0,1}")
        .prop_map(|(before, json, after)| format!("{before}{json}{after}"))
}

#[test]
fn words_are_exactly_those_of_the_protocol() {
    assert_eq!(Environment::ALL.map(Environment::as_str), ["k8s", "slurm"]);
    assert_eq!(Action::ALL.map(Action::as_str), ["execute", "stage_in", "stage_out"]);
    for wrong in ["", "K8s", "slurm ", "stage_in\0"] {
        assert!(Environment::parse(wrong).is_err() && Action::parse(wrong).is_err());
    }
}

#[test]
fn material_has_its_bounds() {
    let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    assert_eq!(Material::parse(&text(1_048_576)).unwrap().as_str().len(), 1_048_576);
    assert!(Material::parse(&text(1_048_577)).is_err());
    let nested = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat();
    Material::parse(&nested(128)).unwrap();
    assert!(Material::parse(&nested(129)).is_err());
    assert!(Material::parse(&nested(400_000)).is_err());
    assert!(Material::parse(&format!("[{}]", "{\"a\":[".repeat(65) + &"]}".repeat(65))).is_err());
    // Brackets that are text, or beside each other, nest nothing.
    let brackets = "[{".repeat(200);
    Material::parse(&format!(r#"{{"\"{brackets}":"\\\"{brackets}","b":"{brackets}\\"}}"#)).unwrap();
    Material::parse(&format!("[{}0]", "[{}],".repeat(200))).unwrap();
}

#[test]
fn a_deadline_has_its_years() {
    for text in ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2030-01-01T00:00:00+02:00"]
    {
        Deadline::parse(text).unwrap();
    }
    for text in [
        "1969-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59-00:01",
        "9999-12-31T23:59:60Z",
        "10000-01-01T00:00:00Z",
        "2030-01-01",
        "2030-01-01T00:00:00",
        "tomorrow",
        "",
    ] {
        assert!(Deadline::parse(text).is_err(), "{text}");
    }
    let deadline = Deadline::parse("2030-01-01T00:00:00.5Z").unwrap();
    for (now, passed) in [
        ("2030-01-01T00:00:00.499999Z", false),
        ("2030-01-01T00:00:00.5Z", true),
        ("2030-01-01T00:00:00.500001Z", true),
    ] {
        assert_eq!(deadline.has_passed(now.parse().unwrap()), passed, "{now}");
    }
}

#[test]
fn the_project_of_a_run_that_is_not_there_is_no_projects_name() {
    assert!(ProjectId::parse(ProjectId::OF_NO_RUN).is_err());
    assert!(ProjectId::parse(&format!("{}s", ProjectId::OF_NO_RUN)).is_ok());
}
