//! Which ServiceAccounts are let in, and as what: the two maps of exact subjects.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use crate::{grants::Entries, principal::Environment, service_account::ServiceAccount};

/// The longest map that is read, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// Who is granted what, by exact subjects. Nothing is looked up by a prefix or a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectGrants(HashMap<ServiceAccount, SubjectGrant>);

/// What a ServiceAccount is let in as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubjectGrant {
    /// The Runtime that takes the stream of this environment. Several may.
    Runtime(Environment),
    /// An Admission, which reads accepted material of this environment and nothing else.
    Admission(Environment),
}

/// Every mistake of the two maps, one line each, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubjectErrors {
    /// Those of the map of the Runtimes.
    pub runtimes: Vec<String>,
    /// Those of the map of the Admissions. A subject of both maps is told here.
    pub admissions: Vec<String>,
}

impl SubjectGrants {
    /// Reads the two maps, JSON objects from a subject to `k8s` or `slurm`. A map that is not there
    /// is empty.
    ///
    /// # Errors
    ///
    /// Every mistake. What is no subject is not repeated.
    pub fn parse(runtimes: Option<&str>, admissions: Option<&str>) -> Result<Self, SubjectErrors> {
        let mut errors = SubjectErrors::default();
        let runtimes = map(runtimes, &mut errors.runtimes);
        let admissions = map(admissions, &mut errors.admissions);
        let known: HashSet<_> = runtimes.iter().map(|(subject, _)| subject).collect();
        for (subject, _) in &admissions {
            if known.contains(subject) {
                errors.admissions.push(format!("{subject}: is granted as a Runtime already"));
            }
        }
        if !errors.runtimes.is_empty() || !errors.admissions.is_empty() {
            return Err(errors);
        }
        let of = |rows: Vec<(_, Option<Environment>)>, grant: fn(Environment) -> SubjectGrant| {
            rows.into_iter().filter_map(move |(subject, environment)| {
                environment.map(|environment| (subject, grant(environment)))
            })
        };
        let runtimes = of(runtimes, SubjectGrant::Runtime);
        Ok(Self(runtimes.chain(of(admissions, SubjectGrant::Admission)).collect()))
    }

    /// What a ServiceAccount is let in as.
    #[must_use]
    pub fn of(&self, account: &ServiceAccount) -> Option<SubjectGrant> {
        self.0.get(account).copied()
    }

    /// Every grant, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&ServiceAccount, SubjectGrant)> {
        self.0.iter().map(|(account, grant)| (account, *grant))
    }

    /// How many subjects are granted something.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nobody is let in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The rows of a map whose subject is one, each subject once. Its environment is missing where it is
/// none, which is a mistake already.
fn map(
    text: Option<&str>,
    mistakes: &mut Vec<String>,
) -> Vec<(ServiceAccount, Option<Environment>)> {
    let Some(text) = text else { return Vec::new() };
    if text.len() > MOST_BYTES {
        mistakes.push(format!("has more than {MOST_BYTES} bytes"));
        return Vec::new();
    }
    let Ok(Entries(entries)) = serde_json::from_str(text) else {
        mistakes.push("must be a JSON object from subjects to environments".to_owned());
        return Vec::new();
    };
    let mut rows = Vec::new();
    let mut seen = HashSet::new();
    for (number, (subject, environment)) in (1..).zip(entries) {
        let Ok(subject) = ServiceAccount::parse(&subject) else {
            mistakes.push(format!("entry {number}: {SUBJECT_RULE}"));
            continue;
        };
        let environment = of_json(environment);
        if environment.is_none() {
            mistakes.push(format!("{subject}: must be \"k8s\" or \"slurm\""));
        }
        if seen.insert(subject.clone()) {
            rows.push((subject, environment));
        } else {
            mistakes.push(format!("{subject}: is there more than once"));
        }
    }
    rows
}

fn of_json(value: &RawValue) -> Option<Environment> {
    Environment::parse(&serde_json::from_str::<String>(value.get()).ok()?).ok()
}

const SUBJECT_RULE: &str = "the subject must be system:serviceaccount:<namespace>:<name>";
