//! Who may depend on whom: the rules of docs/ARCHITECTURE.md, "Who may touch what", as a function
//! of what `cargo metadata` says.

mod workspace;

use std::{collections::BTreeSet, fmt};

use workspace::{Dependency, Kind};

pub(crate) use workspace::Workspace;

/// The only crates of ours that a context may use.
const BELOW_CONTEXTS: [&str; 2] = ["database", "ssh-keys"];

/// The only crate of ours that who speaks to a message broker may use.
const BELOW_MESSAGES: &str = "broker";

/// What a context reaches on no way, and the rule that says so.
const FAR_FROM_CONTEXTS: [(Is, Rule); 2] =
    [(is_hyper, Rule::ContextToHyper), (is_broker, Rule::ContextToBroker)];

/// What reaches the parsers of the programs too. It is shipped nowhere, so nobody depends on it.
const FUZZ_TARGETS: &str = "fuzz-targets";

/// Whether a crate is of a kind, by its name.
type Is = fn(&str) -> bool;

/// A dependency that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// From the crate whose manifest is wrong to what it must not reach.
    path: Vec<String>,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    ContextToContext,
    ContextToOurs,
    ContextToHyper,
    ContextToBroker,
    ProtocolToOurs,
    KeysToOurs,
    MessagesToOurs,
    TestSupportIsForTests,
    NobodyOnPrograms,
    NobodyOnFuzzTargets,
}

/// Every violation, in the order of the workspace's members.
pub(crate) fn violations(workspace: &Workspace) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in workspace.packages() {
        for dependency in &package.dependencies {
            if let Some(rule) = direct_rule(workspace, &package.name, dependency) {
                violations.push(Violation::new(&[&package.name, &dependency.name], rule));
            }
        }
        if workspace.is_context(&package.name) {
            for (is_far, rule) in FAR_FROM_CONTEXTS {
                let path = path_to(is_far, workspace, &package.name, &mut BTreeSet::new());
                violations.extend(path.map(|path| Violation { path, rule }));
            }
        }
    }
    violations
}

/// What one line of a manifest breaks by itself.
fn direct_rule(workspace: &Workspace, from: &str, to: &Dependency) -> Option<Rule> {
    let ours = workspace.holds(&to.name);
    let for_tests = to.kind == Kind::Dev;
    if to.name == FUZZ_TARGETS {
        return Some(Rule::NobodyOnFuzzTargets);
    }
    if workspace.is_program(&to.name) && (from != FUZZ_TARGETS || to.name == "xtask") {
        return Some(Rule::NobodyOnPrograms);
    }
    if to.name == "test-support" {
        return (!for_tests && from != "xtask").then_some(Rule::TestSupportIsForTests);
    }
    if workspace.is_context(from) && workspace.is_context(&to.name) {
        return Some(Rule::ContextToContext);
    }
    if workspace.is_context(from)
        && ours
        && !for_tests
        && !BELOW_CONTEXTS.contains(&to.name.as_str())
    {
        return Some(Rule::ContextToOurs);
    }
    let alone = match from {
        "site-protocol" => Rule::ProtocolToOurs,
        "ssh-keys" => Rule::KeysToOurs,
        "broker" => Rule::MessagesToOurs,
        "event-relay" | "beto" if to.name != BELOW_MESSAGES => Rule::MessagesToOurs,
        _ => return None,
    };
    (ours && !for_tests).then_some(alone)
}

/// The first way from a crate to one that is far from it, which leads through crates of ours.
fn path_to(
    is_far: Is,
    workspace: &Workspace,
    from: &str,
    seen: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    if !seen.insert(from.to_owned()) {
        return None;
    }
    let package = workspace.packages().find(|package| package.name == from)?;
    let shipped = package.dependencies.iter().filter(|dependency| dependency.kind != Kind::Dev);
    for dependency in shipped {
        if is_far(&dependency.name) {
            return Some(vec![from.to_owned(), dependency.name.clone()]);
        }
        if let Some(mut path) = path_to(is_far, workspace, &dependency.name, seen) {
            path.insert(0, from.to_owned());
            return Some(path);
        }
    }
    None
}

fn is_hyper(name: &str) -> bool {
    name == "hyper" || name.starts_with("hyper-")
}

fn is_broker(name: &str) -> bool {
    name == "lapin"
}

impl Violation {
    fn new(path: &[&str], rule: Rule) -> Self {
        Self { path: path.iter().map(|name| (*name).to_owned()).collect(), rule }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rule, why) = match self.rule {
            Rule::ContextToContext => (
                "a context never depends on another context",
                "what it needs to know from there reaches it as a plain value in the call",
            ),
            Rule::ContextToOurs => (
                "a context uses only database and ssh-keys of ours",
                "the wire and the service around it are the binary's: it must work under any of them",
            ),
            Rule::ContextToHyper => (
                "a context never reaches hyper",
                "the rules of the domain don't know how they are asked",
            ),
            Rule::ContextToBroker => (
                "a context never reaches a message broker",
                "it writes its events to its outbox; a relay publishes them",
            ),
            Rule::MessagesToOurs => (
                "event-relay and beto use only broker of ours, and that uses none",
                "they publish for any outbox and ask for any context: the binary joins them",
            ),
            Rule::ProtocolToOurs => (
                "site-protocol depends on no crate of ours",
                "it is shared with programs outside this repository and holds no logic",
            ),
            Rule::KeysToOurs => (
                "ssh-keys depends on no crate of ours",
                "the agent of a Site links it and none of the control plane's parts",
            ),
            Rule::TestSupportIsForTests => (
                "test-support is never a normal dependency",
                "nothing that is made for tests may reach a release; only xtask, which is shipped nowhere, links it",
            ),
            Rule::NobodyOnPrograms => (
                "nobody depends on a program of bins/ or on xtask",
                "a program assembles; what others need of it belongs in a crate",
            ),
            Rule::NobodyOnFuzzTargets => (
                "nobody depends on fuzz-targets",
                "it reaches into the programs to check their parsers, and is for fuzz/ alone",
            ),
        };
        write!(f, "{}: {rule}\n    {why}", self.path.join(" → "))
    }
}

#[cfg(test)]
mod tests;
