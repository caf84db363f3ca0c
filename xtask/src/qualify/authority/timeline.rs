//! What was asked and what was so meanwhile, and whether the two agree.

use std::{collections::BTreeMap, time::Duration};

/// A time since the beginning of the run.
pub(crate) type Moment = Duration;

/// What a request came to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    /// The Attempt may do it, or here are the bytes.
    Yes,
    /// A refusal, by its code.
    No(String),
    /// Nothing can be said: 503, by its code.
    Unavailable(String),
    /// No answer of the Site API: the connection failed, as it does while the process is killed.
    NoAnswer,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Which of the things that can be asked for.
    pub(crate) question: &'static str,
    pub(crate) began: Moment,
    pub(crate) ended: Moment,
    pub(crate) told: Told,
}

/// A time in which an answer can't be a yes: from the moment when what was needed was surely gone
/// until the moment before it was given back.
#[derive(Clone, Debug)]
pub(crate) struct Away {
    /// What was taken away.
    pub(crate) what: &'static str,
    /// To which questions it matters.
    pub(crate) questions: &'static [&'static str],
    /// The codes with which a request may be refused that lies wholly in it.
    pub(crate) codes: &'static [&'static str],
    pub(crate) from: Moment,
    pub(crate) until: Moment,
}

impl Away {
    fn holds(&self, request: &Request) -> bool {
        self.questions.contains(&request.question)
            && self.from <= request.began
            && request.ended <= self.until
    }
}

/// Everything that a run leaves.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) requests: Vec<Request>,
    pub(crate) aways: Vec<Away>,
    /// From the last fault until every question was answered by a yes again.
    pub(crate) recovered: Option<Duration>,
}

/// One rule, how often it was put to the test, and what broke it.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) rule: String,
    pub(crate) tested: usize,
    pub(crate) violations: Vec<String>,
}

/// How long an answer may take that can't be had: the budget of a question, and what a loaded machine
/// needs around it.
pub(crate) struct Bounds {
    pub(crate) unavailable_within: Duration,
}

/// Looks at everything. A rule that was never put to the test counts as broken.
pub(crate) fn check(history: &History, bounds: &Bounds) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        kinds(history).into_iter().map(|what| away(history, what)).collect();
    findings.push(in_time(history, bounds));
    findings.push(recovered(history));
    findings
}

fn kinds(history: &History) -> Vec<&'static str> {
    let mut kinds: Vec<_> = history.aways.iter().map(|away| away.what).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// While it is away there is no yes, and a refusal says why.
fn away(history: &History, what: &'static str) -> Finding {
    let mut finding = Finding {
        rule: format!("no yes and no other reason while {what}"),
        tested: 0,
        violations: Vec::new(),
    };
    for request in &history.requests {
        let aways: Vec<&Away> = history.aways.iter().filter(|away| away.holds(request)).collect();
        if !aways.iter().any(|away| away.what == what) {
            continue;
        }
        match &request.told {
            Told::Yes => finding.violations.push(shown(request)),
            // Another thing that is away at the same time may be told first.
            Told::No(code) if !aways.iter().any(|away| away.codes.contains(&code.as_str())) => {
                finding.violations.push(shown(request));
            }
            Told::No(_) => finding.tested += 1,
            Told::Unavailable(_) | Told::NoAnswer => {
                finding.tested += usize::from(aways.iter().any(|away| away.codes.is_empty()));
            }
        }
    }
    finding
}

fn in_time(history: &History, bounds: &Bounds) -> Finding {
    let mut finding = Finding {
        rule: "what can't be said is said within the budget".to_owned(),
        tested: 0,
        violations: Vec::new(),
    };
    for request in &history.requests {
        if let Told::Unavailable(_) = request.told {
            finding.tested += 1;
            if request.ended.saturating_sub(request.began) > bounds.unavailable_within {
                finding.violations.push(shown(request));
            }
        }
    }
    finding
}

fn recovered(history: &History) -> Finding {
    let violations = match history.recovered {
        Some(_) => Vec::new(),
        None => vec!["some question was never answered by a yes again".to_owned()],
    };
    Finding {
        rule: "after the last fault everything is a yes again".to_owned(),
        tested: 1,
        violations,
    }
}

/// How often each question was told what.
pub(crate) fn counts(history: &History) -> BTreeMap<(&'static str, Told), usize> {
    let mut counts = BTreeMap::new();
    for request in &history.requests {
        *counts.entry((request.question, request.told.clone())).or_default() += 1;
    }
    counts
}

fn shown(request: &Request) -> String {
    let Request { question, began, ended, told } = request;
    format!("{question}, from {began:.3?} to {ended:.3?}: {told:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { unavailable_within: Duration::from_secs(5) };

    fn at(seconds: u64) -> Moment {
        Duration::from_secs(seconds)
    }

    fn request(began: u64, ended: u64, told: Told) -> Request {
        Request { question: "execute", began: at(began), ended: at(ended), told }
    }

    fn history(requests: Vec<Request>) -> History {
        let permission = Away {
            what: "the permission is taken away",
            questions: &["execute"],
            codes: &["permission_denied"],
            from: at(10),
            until: at(20),
        };
        let silent = Away {
            what: "the responder is dead",
            questions: &["execute"],
            codes: &[],
            from: at(30),
            until: at(40),
        };
        History { requests, aways: vec![permission, silent], recovered: Some(at(1)) }
    }

    fn broken(history: &History) -> Vec<String> {
        let findings = check(history, &BOUNDS).into_iter();
        findings
            .filter(|finding| !finding.violations.is_empty())
            .map(|finding| finding.rule)
            .collect()
    }

    fn denied() -> Told {
        Told::No("permission_denied".to_owned())
    }

    fn unavailable() -> Told {
        Told::Unavailable("authority_unavailable".to_owned())
    }

    #[test]
    fn a_good_history_breaks_no_rule_and_tests_each() {
        let good = history(vec![
            request(1, 2, Told::Yes),
            request(11, 12, denied()),
            request(31, 34, unavailable()),
            request(41, 42, Told::Yes),
        ]);
        assert_eq!(broken(&good), [""; 0]);
        assert!(check(&good, &BOUNDS).iter().all(|finding| finding.tested > 0));
    }

    #[test]
    fn a_yes_is_broken_only_where_the_request_lies_wholly_in_the_time() {
        for (began, ended, is_broken) in
            [(9, 11, false), (10, 20, true), (19, 21, false), (12, 13, true), (1, 30, false)]
        {
            let broken = broken(&history(vec![request(began, ended, Told::Yes)]));
            assert_eq!(!broken.is_empty(), is_broken, "{began} to {ended}");
        }
    }

    #[test]
    fn a_refusal_for_another_reason_is_broken_unless_that_is_so_as_well() {
        let other = || Told::No("binding_not_retained".to_owned());
        let mut history = history(vec![request(12, 13, other())]);
        assert_eq!(broken(&history).len(), 1);
        history.aways.push(Away {
            what: "the binding is released",
            questions: &["execute"],
            codes: &["binding_not_retained"],
            from: at(11),
            until: at(14),
        });
        assert_eq!(broken(&history), [""; 0]);
        history.aways[2].questions = &["view"];
        assert_eq!(broken(&history).len(), 1);
    }

    #[test]
    fn a_refusal_while_nobody_can_be_asked_is_broken() {
        assert_eq!(broken(&history(vec![request(31, 32, denied())])).len(), 1);
    }

    #[test]
    fn what_takes_too_long_is_broken() {
        assert_eq!(broken(&history(vec![request(31, 37, unavailable())])).len(), 1);
        assert_eq!(broken(&history(vec![request(31, 36, unavailable())])), [""; 0]);
    }

    #[test]
    fn a_run_that_never_recovers_is_broken() {
        let mut history = history(Vec::new());
        history.recovered = None;
        assert_eq!(broken(&history).len(), 1);
    }
}
