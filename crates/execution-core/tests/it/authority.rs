//! The current authority, for every combination of what it is decided from.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use execution_core::{
    Action, Attempt, Deadline, Environment, MemberId, Run, SiteId,
    authority::{Answer, Binding, Refusal, Request, before_asking},
};

use crate::support::{attempt, here, id, place, run};

/// What is read for a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Found {
    Nothing,
    TheRun,
    AnotherRun,
    OfAnotherSite,
    OfAnotherEnvironment,
}

/// The Attempts of a Run, in order: whether each is over.
const ATTEMPTS: [&[bool]; 9] = [
    &[],
    &[false],
    &[true],
    &[false, false],
    &[true, false],
    &[false, true],
    &[true, true],
    &[true, true, false],
    &[false, false, true],
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Clock {
    Before,
    AtTheDeadline,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    ToNothing,
    Retained,
    Released,
    AtAnotherSite,
    AnotherMember,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    found: Found,
    cancelled: bool,
    attempts: &'static [bool],
    asked: usize,
    action: Action,
    clock: Clock,
    bound: Bound,
    answer: Answer,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for found in [
        Found::Nothing,
        Found::TheRun,
        Found::AnotherRun,
        Found::OfAnotherSite,
        Found::OfAnotherEnvironment,
    ] {
        for cancelled in [false, true] {
            for attempts in ATTEMPTS {
                for asked in 1..=4 {
                    for action in [Action::Execute, Action::StageIn, Action::StageOut] {
                        for clock in [Clock::Before, Clock::AtTheDeadline, Clock::After] {
                            for bound in [
                                Bound::ToNothing,
                                Bound::Retained,
                                Bound::Released,
                                Bound::AtAnotherSite,
                                Bound::AnotherMember,
                            ] {
                                for answer in [Answer::Allowed, Answer::Denied, Answer::CouldNotAsk]
                                {
                                    cases.push(Case {
                                        found,
                                        cancelled,
                                        attempts,
                                        asked,
                                        action,
                                        clock,
                                        bound,
                                        answer,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    cases
}

/// What the documentation says of a case: every reason against it that is true, the first one first.
fn reasons(case: Case) -> Vec<Refusal> {
    let newest = case.attempts.len();
    let exists = case.asked <= newest;
    let mut reasons = Vec::new();
    let mut against = |is_true: bool, refusal: Refusal| {
        if is_true {
            reasons.push(refusal);
        }
    };
    against(case.found != Found::TheRun, Refusal::NotFound);
    against(case.cancelled, Refusal::Cancelled);
    against(!exists, Refusal::AttemptUnknown);
    if exists {
        let latest = attempt(i32::try_from(newest).unwrap());
        against(case.asked < newest, Refusal::AttemptNotLatest { latest });
        against(case.attempts[case.asked - 1], Refusal::AttemptFinal);
    }
    let late = matches!(case.clock, Clock::AtTheDeadline | Clock::After);
    against(late && case.action != Action::StageOut, Refusal::DeadlinePassed);
    against(case.bound != Bound::Retained, Refusal::BindingNotRetained);
    against(case.answer == Answer::Denied, Refusal::Denied);
    against(case.answer == Answer::CouldNotAsk, Refusal::CouldNotAsk);
    reasons
}

fn deadline() -> DateTime<Utc> {
    "2030-01-01T12:00:00Z".parse().unwrap()
}

fn read(case: Case) -> Option<Run> {
    let mut accepted = run(if case.found == Found::AnotherRun { "r2" } else { "r1" });
    accepted.deadline = Deadline::new(deadline()).unwrap();
    match case.found {
        Found::Nothing => return None,
        Found::OfAnotherSite => accepted.place = place("north-2", Environment::Slurm),
        Found::OfAnotherEnvironment => accepted.place = place("north-1", Environment::K8s),
        Found::TheRun | Found::AnotherRun => {}
    }
    let long_ago = deadline() - TimeDelta::days(7);
    let attempts = (1..).zip(case.attempts).map(|(number, over)| Attempt {
        number: attempt(number),
        submitted_at: long_ago,
        final_at: over.then_some(long_ago),
    });
    Some(Run {
        accepted,
        accepted_at: long_ago,
        cancelled_at: case.cancelled.then_some(long_ago),
        attempts: attempts.collect(),
    })
}

fn bound(case: Case) -> Option<Binding> {
    let (mut site, mut member) = ("north-1", "member-1");
    match case.bound {
        Bound::ToNothing => return None,
        Bound::AtAnotherSite => site = "north-2",
        Bound::AnotherMember => member = "member-2",
        Bound::Retained | Bound::Released => {}
    }
    Some(Binding {
        site: SiteId::parse(site).unwrap(),
        member: MemberId::parse(member).unwrap(),
        released_at: (case.bound == Bound::Released).then(deadline),
    })
}

fn now(case: Case) -> DateTime<Utc> {
    let moment = TimeDelta::microseconds(1);
    match case.clock {
        Clock::Before => deadline() - moment,
        Clock::AtTheDeadline => deadline(),
        Clock::After => deadline() + moment,
    }
}

#[test]
fn every_combination_is_decided_as_documented() {
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    let cases = cases();
    assert_eq!(cases.len(), 5 * 2 * 9 * 4 * 3 * 3 * 5 * 3);
    for case in cases {
        let request = Request {
            place: here(),
            run: id("r1"),
            attempt: attempt(i32::try_from(case.asked).unwrap()),
            action: case.action,
        };
        let reasons = reasons(case);
        // What needs an answer is told only where nothing else is wrong, and else nobody is asked.
        let needs_asking =
            |refusal: &&Refusal| !matches!(refusal, Refusal::Denied | Refusal::CouldNotAsk);
        let known = reasons.iter().find(needs_asking);
        let asked = before_asking(&request, read(case).as_ref(), bound(case).as_ref(), now(case));
        assert_eq!(asked.as_ref().err(), known, "{case:?}");
        let decided = match asked {
            Ok(question) => {
                assert_eq!(question.member().as_str(), "member-1");
                assert_eq!(question.project().as_str(), "project-1");
                let permission = match case.action {
                    Action::Execute => "runs.execute",
                    Action::StageIn => "repositories.read",
                    Action::StageOut => "repositories.write",
                };
                assert_eq!(question.permission(), permission);
                question.decide(case.answer)
            }
            Err(refusal) => Err(refusal),
        };
        assert_eq!(decided.as_ref().err(), reasons.first(), "{case:?}");
        match decided {
            Ok(authorised) => {
                assert_eq!(authorised.run(), &request.run);
                assert_eq!(authorised.attempt(), request.attempt);
                assert_eq!(authorised.action(), request.action);
                *counted.entry("Authorised".to_owned()).or_default() += 1;
            }
            Err(refusal) => {
                let name = format!("{refusal:?}");
                let name = name.split(' ').next().unwrap().to_owned();
                *counted.entry(name).or_default() += 1;
            }
        }
    }
    // Each refusal was met, and so was a yes: of the Attempts that are the latest and not over, for
    // two actions before the deadline and for one at any time.
    assert_eq!(counted.len(), 10, "{counted:?}");
    assert_eq!(counted["Authorised"], 4 * (2 + 3), "{counted:?}");
}

#[test]
fn each_action_has_its_row() {
    let rows =
        Action::ALL.map(|action| (action.as_str(), action.permission(), action.is_recovery()));
    assert_eq!(
        rows,
        [
            ("execute", "runs.execute", false),
            ("stage_in", "repositories.read", false),
            ("stage_out", "repositories.write", true),
        ]
    );
    for action in Action::ALL {
        assert_eq!(Action::parse(action.as_str()).unwrap(), action);
    }
    for wrong in ["", "Execute", "stage-in", "stage_out ", "runs.execute"] {
        assert!(Action::parse(wrong).is_err(), "{wrong:?}");
    }
}
