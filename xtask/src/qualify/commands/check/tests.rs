//! A good history passes, and each corruption of it breaks the rule that it should, and no other.

mod corruptions;
mod good;
mod linked;
mod model;

use super::{findings::Rule, *};
use crate::qualify::commands::history::DatabaseClock;

fn broken(history: &History) -> Vec<(Rule, Vec<String>)> {
    let findings = check(history).into_iter().filter(|finding| !finding.violations.is_empty());
    findings.map(|finding| (finding.rule, finding.violations)).collect()
}

#[test]
fn a_good_history_passes_and_every_rule_has_something_to_judge() {
    let history = good::history();
    assert_eq!(broken(&history), []);
    for finding in check(&history) {
        assert!(finding.counted > 0, "{:?} judged nothing", finding.rule);
    }
}

#[test]
fn each_corruption_breaks_the_rule_that_it_should_and_no_other() {
    let mut wrong = Vec::new();
    for (what, rule, corrupt) in corruptions::ALL {
        let mut history = good::history();
        corrupt(&mut history);
        let broken = broken(&history);
        if broken.iter().map(|(rule, _)| rule).ne([rule]) {
            wrong.push((what, rule, broken));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_database_whose_clock_was_known_to_be_wrong_is_believed() {
    let mut history = good::history();
    let since = history.restores[0].restore_ended;
    let began_at = history.began_at_micros + i64::try_from(since.as_micros()).unwrap();
    for rows in &mut history.database.streams {
        for row in rows.results.iter_mut().filter(|row| row.received_at_micros > began_at) {
            row.received_at_micros += 3_600_000_000;
        }
    }
    let rules: Vec<_> = broken(&history).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, [Rule::ReceiptsKept]);
    history.database_clocks.push(DatabaseClock { from: since, ahead_seconds: 3_600 });
    assert_eq!(broken(&history), []);
}
