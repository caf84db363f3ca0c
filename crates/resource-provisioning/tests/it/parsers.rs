//! What parses names and numbers from outside: it takes exactly its rule, and never panics.

use proptest::prelude::*;
use resource_provisioning::{Account, BindingId, Gid, MemberId, SiteId, Uid, UnixUser};

/// Texts near the rules.
fn near() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_][a-z0-9_-]{0,34}[$]?",
        "[A-Za-z0-9._$-]{0,70}",
        "[!-~]{0,260}",
        "[+-]?0{0,2}[0-9]{1,11}",
        "(0|99|100|999|1000|6553[3-6]|214748364[678]|4294967295)",
        "[ -~\\n\u{0}é٣]{0,20}",
        "(root|_|[$]|-a|a[$]|a[$]b|nobody)",
        any::<String>(),
    ]
}

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

fn only(text: &str, allowed: &str) -> bool {
    text.chars().all(|character| allowed.contains(character))
}

/// As `useradd` has it, character by character.
fn is_user(text: &str) -> bool {
    let small = "abcdefghijklmnopqrstuvwxyz_";
    let characters: Vec<char> = text.chars().collect();
    let (first, last) = (0, characters.len().saturating_sub(1));
    text != "root"
        && (1..=32).contains(&characters.len())
        && characters.iter().enumerate().all(|(place, character)| match place {
            place if place == first => small.contains(*character),
            place if place == last && *character == '$' => true,
            _ => format!("{small}0123456789-").contains(*character),
        })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn names_follow_their_rules(text in near()) {
        let first: String = text.chars().take(1).collect();
        let named = (1..=64).contains(&text.chars().count())
            && only(&first, LETTERS)
            && only(&text, &format!("{LETTERS}._-"));
        let taken = |taken: Option<&str>, rule: bool| {
            assert_eq!(taken, rule.then_some(text.as_str()), "{text:?}");
        };
        taken(SiteId::parse(&text).as_ref().map(SiteId::as_str).ok(), named);
        taken(Account::parse(&text).as_ref().map(Account::as_str).ok(), named);
        let visible = text.chars().all(|character| ('!'..='~').contains(&character));
        let member = visible && (1..=255).contains(&text.chars().count());
        taken(MemberId::parse(&text).as_ref().map(MemberId::as_str).ok(), member);
        taken(UnixUser::parse(&text).as_ref().map(UnixUser::as_str).ok(), is_user(&text));
    }

    #[test]
    fn numbers_are_plain_decimals_within_their_range(text in near()) {
        let number: Option<i64> = text.parse().ok().filter(|number: &i64| number.to_string() == text);
        let id = |lowest: i64| {
            let number = number.filter(|n| *n >= lowest && *n < 1 << 31);
            number.filter(|n| *n != 65_534 && *n != 65_535)
        };
        prop_assert_eq!(Uid::parse(&text).ok().map(Uid::get), id(1000));
        prop_assert_eq!(Gid::parse(&text).ok().map(Gid::get), id(100));
        let binding = BindingId::parse(&text).ok().map(BindingId::get);
        prop_assert_eq!(binding, number.filter(|n| *n >= 1));
    }
}

#[test]
fn nobody_is_root() {
    let refusal = UnixUser::parse("root").unwrap_err();
    assert_eq!(refusal.to_string(), "root is nobody's account");
    for id in ["0", "00", "-1", "4294967295", "65534", "65535", "2147483648"] {
        assert!(Uid::parse(id).is_err() && Gid::parse(id).is_err(), "{id}");
    }
    for id in ["1000", "65533", "65536", "2147483647"] {
        assert_eq!(Uid::parse(id).unwrap().get(), Gid::parse(id).unwrap().get());
    }
    assert!(Uid::parse("100").is_err() && Gid::parse("100").is_ok());
}
