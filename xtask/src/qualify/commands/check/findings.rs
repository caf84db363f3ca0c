//! The rules, and what was found of each.

use std::collections::BTreeMap;

use crate::{claim::Claim, qualify::commands::history::Moment};

/// What has to hold. Each is one claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    NoGap,
    Order,
    Lists,
    NoLoss,
    NothingElse,
    Chain,
    OneEnding,
    NotedRuns,
    ReceiptsKept,
    ReceiptsTrue,
    Outputs,
    Verdicts,
    Superseded,
    Generations,
    Sessions,
    Pages,
    Repeats,
    AfterReceipt,
    OneAtATime,
    Programs,
    NoFault,
    Progress,
    Recovered,
}

impl Rule {
    pub(crate) const ALL: [Self; 23] = [
        Self::NoGap,
        Self::Order,
        Self::Lists,
        Self::NoLoss,
        Self::NothingElse,
        Self::Chain,
        Self::OneEnding,
        Self::NotedRuns,
        Self::ReceiptsKept,
        Self::ReceiptsTrue,
        Self::Outputs,
        Self::Verdicts,
        Self::Superseded,
        Self::Generations,
        Self::Sessions,
        Self::Pages,
        Self::Repeats,
        Self::AfterReceipt,
        Self::OneAtATime,
        Self::Programs,
        Self::NoFault,
        Self::Progress,
        Self::Recovered,
    ];

    /// The claim, and what is counted for it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::NoGap => ("a stream has no gap", "places"),
            Self::Order => {
                ("what was acknowledged before another was asked for stands before it", "calls")
            }
            Self::Lists => ("a list stands together, in its order", "lists"),
            Self::NoLoss => ("what was acknowledged is there, at its place", "commands"),
            Self::NothingElse => ("nothing else is there", "commands"),
            Self::Chain => ("ids, digests and chain are what the commands make them", "digests"),
            Self::OneEnding => ("a command has one ending", "endings"),
            Self::NotedRuns => ("a result is that of a run that was noted", "results"),
            Self::ReceiptsKept => ("a result with a receipt is there", "receipts"),
            Self::ReceiptsTrue => ("a receipt is for the bytes that are stored", "receipts"),
            Self::Outputs => ("a private output that counts is there, whole", "outputs"),
            Self::Verdicts => ("no refusal is false", "answers"),
            Self::Superseded => ("nobody writes after being taken over", "answers"),
            Self::Generations => ("generations never go down", "sessions"),
            Self::Sessions => ("each session is kept, with its event", "sessions"),
            Self::Pages => ("a page leaves nothing out", "pages"),
            Self::Repeats => ("a handler that runs again is told so", "runs"),
            Self::AfterReceipt => ("no handler runs after its receipt", "runs"),
            Self::OneAtATime => ("handlers run one at a time, in the stream's order", "runs"),
            Self::Programs => ("no program ends or panics by itself", "starts"),
            Self::NoFault => ("no request meets a fault of ours", "requests"),
            Self::Progress => ("no stream stands still while it has work", "receipts"),
            Self::Recovered => ("everything recovers within the bound", "commands"),
        }
    }
}

/// What was found of one rule.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) rule: Rule,
    /// How many of what the rule speaks of were judged.
    pub(crate) counted: u64,
    /// How many of them a restored database took back.
    pub(crate) taken_back: u64,
    /// Each violation, with stream, place, id and moments.
    pub(crate) violations: Vec<String>,
}

impl Finding {
    pub(crate) fn claim(&self) -> Claim {
        let (claim, unit) = self.rule.words();
        let mut figure = format!("{} {unit}", self.counted);
        if self.taken_back > 0 {
            figure.push_str(&format!(", {} taken back by restores", self.taken_back));
        }
        if !self.violations.is_empty() {
            figure.push_str(&format!(", {} VIOLATIONS", self.violations.len()));
        }
        if self.counted == 0 {
            figure.push_str(": NOTHING was judged");
        }
        Claim::new(claim, figure, self.violations.is_empty() && self.counted > 0)
    }
}

/// Collects while the checker works.
#[derive(Default)]
pub(super) struct Findings(BTreeMap<Rule, Finding>);

impl Findings {
    pub(super) fn count(&mut self, rule: Rule, more: usize) {
        self.of(rule).counted += more as u64;
    }

    pub(super) fn taken_back(&mut self, rule: Rule) {
        self.of(rule).taken_back += 1;
    }

    pub(super) fn broken(&mut self, rule: Rule, what: String) {
        self.of(rule).violations.push(what);
    }

    /// Notes a violation where there is one.
    pub(super) fn hold(&mut self, rule: Rule, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.broken(rule, what());
        }
    }

    pub(super) fn finish(mut self) -> Vec<Finding> {
        Rule::ALL.into_iter().map(|rule| self.of(rule).clone()).collect()
    }

    fn of(&mut self, rule: Rule) -> &mut Finding {
        let none = Finding { rule, counted: 0, taken_back: 0, violations: Vec::new() };
        self.0.entry(rule).or_insert(none)
    }
}

/// A span as a violation tells it.
pub(super) fn span(began: Moment, ended: Moment) -> String {
    format!("from {} to {}", moment(began), moment(ended))
}

/// A moment as a violation tells it.
pub(super) fn moment(moment: Moment) -> String {
    format!("{:.3} s", moment.as_secs_f64())
}
