use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use callers::{Found, Grants, LiveGrants, NativeBearer, Standing};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{at, bearer, file, now, row};

const LAST_GOOD: Duration = Duration::from_secs(300);
const INVALID: &str = "{\"version\": 1";

/// A followed file, with a clock that starts at 0 s.
struct Followed {
    live: LiveGrants,
    start: Instant,
}

impl Followed {
    fn new() -> Self {
        Self { live: LiveGrants::new(LAST_GOOD), start: Instant::now() }
    }

    fn finds(&mut self, second: u64, found: Found) -> Standing {
        let at = self.start + Duration::from_secs(second);
        self.live.observe(found, at, now()).clone()
    }

    fn reads(&mut self, second: u64, text: &str) -> Standing {
        self.finds(second, Found::Text(text.to_owned()))
    }
}

fn lets_in(standing: &Standing, bearer: &NativeBearer) -> bool {
    standing.grants.as_ref().unwrap().authenticate(bearer, now()).is_ok()
}

#[test]
fn a_valid_file_replaces_the_grants_whole() {
    let (old, new) = (bearer(), bearer());
    let mut followed = Followed::new();
    let before = followed.reads(0, &file(&[row(&old)]));
    assert!(lets_in(&before, &old) && !lets_in(&before, &new));
    let after = followed.reads(1, &file(&[row(&new)]));
    assert!(!lets_in(&after, &old) && lets_in(&after, &new));
    assert_eq!(after.alarm, None);
}

#[test]
fn a_file_that_did_not_change_keeps_the_very_same_grants() {
    let text = file(&[row(&bearer())]);
    let mut followed = Followed::new();
    let (first, second) = (followed.reads(0, &text), followed.reads(1, &text));
    assert!(Arc::ptr_eq(&first.grants.unwrap(), &second.grants.unwrap()));
}

#[test]
fn an_empty_list_is_valid_and_lets_nobody_in() {
    let known = bearer();
    let mut followed = Followed::new();
    followed.reads(0, &file(&[row(&known)]));
    let standing = followed.reads(1, &file(&[]));
    assert!(!lets_in(&standing, &known));
    assert_eq!(standing.alarm, None);
}

#[test]
fn the_last_good_grants_outlive_an_invalid_file_by_their_time_and_no_longer() {
    let known = bearer();
    let mut followed = Followed::new();
    followed.reads(0, &file(&[row(&known)]));
    for (second, in_force) in [(10, true), (309, true), (310, false), (311, false)] {
        let standing = followed.reads(second, INVALID);
        assert_eq!(standing.grants.is_some(), in_force, "second {second}");
        let alarm = standing.alarm.unwrap();
        let consequence = if in_force {
            "the last good grants stay in force for 300 s at most"
        } else {
            "native bearers are unavailable"
        };
        assert_eq!(alarm, format!("the file: must be a JSON object; {consequence}"));
    }
}

#[test]
fn another_invalid_version_does_not_prolong_the_last_good_grants() {
    let mut followed = Followed::new();
    followed.reads(0, &file(&[row(&bearer())]));
    followed.reads(10, INVALID);
    followed.reads(200, "");
    followed.finds(300, Found::Unusable("is a folder".to_owned()));
    assert!(followed.reads(310, "[]").grants.is_none());
}

#[test]
fn a_file_that_is_valid_again_ends_the_alarm_and_begins_the_time_anew() {
    let text = file(&[row(&bearer())]);
    let mut followed = Followed::new();
    followed.reads(0, &text);
    followed.reads(10, INVALID);
    let healed = followed.reads(309, &text);
    assert_eq!((healed.grants.is_some(), healed.alarm), (true, None));
    assert!(followed.reads(400, INVALID).grants.is_some());
    assert!(followed.reads(699, INVALID).grants.is_some());
    assert!(followed.reads(700, INVALID).grants.is_none());
    assert!(followed.reads(701, &text).grants.is_some());
}

#[test]
fn a_deleted_file_ends_the_grants_at_once_and_for_good() {
    let text = file(&[row(&bearer())]);
    let mut followed = Followed::new();
    followed.reads(0, &text);
    let gone = followed.finds(1, Found::Absent);
    assert!(gone.grants.is_none());
    assert_eq!(gone.alarm.as_deref(), Some("the file does not exist"));
    assert!(followed.reads(2, INVALID).grants.is_none(), "what was deleted is not the last good");
    assert!(followed.reads(3, &text).grants.is_some());
}

#[test]
fn a_file_that_appears_is_taken_up() {
    let mut followed = Followed::new();
    assert!(followed.finds(0, Found::Absent).alarm.is_some());
    let standing = followed.reads(1, &file(&[row(&bearer())]));
    assert_eq!((standing.grants.is_some(), standing.alarm), (true, None));
}

#[test]
fn two_active_grants_become_valid_when_one_of_them_has_expired() {
    let (first, second) = (bearer(), bearer());
    let mut short = row(&first);
    short["expiresAt"] = json!("2030-01-20T00:00:00Z");
    let text = file(&[short, row(&second)]);
    let mut live = LiveGrants::new(LAST_GOOD);
    let start = Instant::now();
    let found = || Found::Text(text.clone());
    let alarm = live.observe(found(), start, now()).alarm.clone().unwrap();
    assert!(alarm.contains("has an active grant already"), "{alarm}");
    let standing = live.observe(found(), start, at("2030-01-20T00:00:00Z"));
    assert!(standing.grants.is_some() && standing.alarm.is_none());
}

#[test]
fn an_alarm_tells_the_first_mistakes_and_counts_the_rest() {
    let rows = vec![json!({}); 40];
    let alarm = Followed::new().reads(0, &file(&rows)).alarm.unwrap();
    assert!(alarm.contains("grants[0].id: is missing"), "{alarm}");
    assert!(alarm.contains("; and 275 more; "), "{alarm}");
    assert!(alarm.len() < 400, "{alarm}");
}

/// What may be found, told apart by what follows from it.
#[derive(Clone, Copy, Debug)]
enum Step {
    Valid(usize),
    Invalid(usize),
    Absent,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..2usize).prop_map(Step::Valid),
        (0..3usize).prop_map(Step::Invalid),
        Just(Step::Absent),
    ]
}

proptest! {
    /// The rule told backwards, from the history: what is in force is the newest valid version after
    /// which nothing was absent, and since which the file has not been invalid for too long.
    #[test]
    fn what_is_in_force_follows_from_the_history_alone(
        steps in prop::collection::vec((step(), 0u64..200), 1..40)
    ) {
        let bearers = [bearer(), bearer()];
        let valid = [file(&[row(&bearers[0])]), file(&[row(&bearers[1])])];
        let invalid = [
            Found::Text(INVALID.to_owned()),
            Found::Text(String::new()),
            Found::Unusable("can't be read".to_owned()),
        ];
        let mut followed = Followed::new();
        let (mut second, mut history) = (0, Vec::new());
        for (step, pause) in steps {
            second += pause;
            history.push((second, step));
            let standing = followed.finds(second, match step {
                Step::Valid(which) => Found::Text(valid[which].clone()),
                Step::Invalid(which) => invalid[which].clone(),
                Step::Absent => Found::Absent,
            });
            let expected = in_force(&history);
            let actual = standing.grants.as_deref().map(|grants: &Grants| {
                bearers.iter().position(|b| grants.authenticate(b, now()).is_ok()).unwrap()
            });
            prop_assert_eq!(actual, expected, "{:?}", history);
            prop_assert_eq!(standing.alarm.is_none(), matches!(step, Step::Valid(_)));
        }
    }
}

fn in_force(history: &[(u64, Step)]) -> Option<usize> {
    let last = history.iter().rposition(|(_, step)| !matches!(step, Step::Invalid(_)))?;
    let Step::Valid(which) = history[last].1 else { return None };
    let (now, _) = history[history.len() - 1];
    let since = history.get(last + 1).map_or(now, |(since, _)| *since);
    (now - since < LAST_GOOD.as_secs()).then_some(which)
}
