//! What parses names from outside: it takes exactly its rule, prints back, and never panics.

use proptest::prelude::*;
use ssh_access::{AccountId, Failure, Failures, KeyEnd, KeyId, MemberId, SiteId, Window};

use crate::support::unix_user;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn names_follow_their_rules(text in prop_oneof![
        "[A-Za-z0-9._-]{0,70}", "[!-~]{0,260}", "[+-]?0{0,2}[0-9]{1,20}", any::<String>(),
    ]) {
        let characters = text.chars().count();
        let name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let site = (1..=64).contains(&characters) && text.chars().all(name)
            && text.starts_with(|c: char| c.is_ascii_alphanumeric());
        prop_assert_eq!(SiteId::parse(&text).ok().map(|site| site.as_str().to_owned()), site.then(|| text.clone()));
        let member = (1..=255).contains(&characters) && text.chars().all(|c| ('!'..='~').contains(&c));
        prop_assert_eq!(MemberId::parse(&text).ok().map(|member| member.as_str().to_owned()), member.then(|| text.clone()));
        let number: Option<i64> = text.parse().ok().filter(|number: &i64| number.to_string() == text);
        prop_assert_eq!(AccountId::parse(&text).ok().map(AccountId::get), number.filter(|n| *n >= 1));
        let window = Window::parse(&text).ok().map(|window| i64::try_from(window.duration().as_secs()).unwrap());
        prop_assert_eq!(window, number.filter(|n| (60..=86_400).contains(n)));
    }

    #[test]
    fn a_reason_is_short_and_printable(text in prop_oneof!["[ -~]{0,210}", any::<String>()]) {
        let failure = Failure::new(unix_user("a"), KeyId::from_bytes([0; 16]), &text);
        let fits = (1..=200).contains(&text.len()) && text.chars().all(|c| (' '..='~').contains(&c));
        prop_assert_eq!(failure.as_ref().ok().map(Failure::reason), fits.then_some(text.as_str()));
    }
}

#[test]
fn a_lease_is_shorter_than_the_window_by_the_skew() {
    for (seconds, skew) in [("60", 6), ("599", 59), ("600", 60), ("601", 60), ("86400", 60)] {
        assert_eq!(Window::parse(seconds).unwrap().skew().as_secs(), skew, "{seconds}");
    }
}

#[test]
fn the_end_of_a_key_has_its_years() {
    for text in ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2030-01-01T00:00:00+02:00"]
    {
        KeyEnd::parse(text).unwrap();
    }
    for text in ["1969-12-31T23:59:59.9Z", "10000-01-01T00:00:00Z", "2030-01-01", "tomorrow", ""] {
        assert!(KeyEnd::parse(text).is_err(), "{text}");
    }
}

#[test]
fn failures_are_bounded_and_each_is_named_once() {
    let failure = |number: u32| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Failure::new(unix_user("a"), KeyId::from_bytes(bytes), "r").unwrap()
    };
    let most = Failures::new((0..1000).rev().map(failure).collect()).unwrap();
    assert_eq!(most.as_slice().len(), 1000);
    assert!(most.as_slice().is_sorted_by_key(|failure| failure.key_id.clone()));
    assert!(most.names(&unix_user("a"), &failure(7).key_id));
    assert!(!most.names(&unix_user("b"), &failure(7).key_id));
    assert!(!most.names(&unix_user("a"), &failure(1000).key_id));
    assert!(Failures::new((0..1001).map(failure).collect()).is_err());
    assert!(Failures::new(vec![failure(1), failure(2), failure(1)]).is_err());
}
