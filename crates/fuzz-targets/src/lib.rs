#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, reason = "a target fails by panicking")]

mod admin;
mod agent;
mod answers;
mod beto;
mod bodies;
mod executions;
mod heads;
mod kubernetes;
mod login;
mod pem;
mod runs;
mod settings;
mod ssh;
mod ssh_agent;
mod ssh_feed;
mod tokens;
mod values;

use std::cell::Cell;

/// A parser, or some that have to agree, and what must hold of any bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of its corpus, and of its program in `fuzz/`.
    pub name: &'static str,
    /// Panics where something does not hold.
    pub check: fn(&[u8]),
}

/// Every target, by name.
pub const TARGETS: [Target; 41] = [
    Target { name: "answer", check: answers::answer },
    Target { name: "authorisation", check: executions::authorisation },
    Target { name: "authorization", check: tokens::authorization },
    Target { name: "beto_answer", check: beto::answer },
    Target { name: "beto_question", check: beto::question },
    Target { name: "broker_url", check: settings::broker_url },
    Target { name: "database_url", check: settings::database_url },
    Target { name: "entity_tags", check: executions::entity_tags },
    Target { name: "grants", check: tokens::grants },
    Target { name: "head", check: heads::head },
    Target { name: "hint", check: values::hint },
    Target { name: "journal", check: agent::journal },
    Target { name: "json_object", check: bodies::json_object },
    Target { name: "json_text", check: bodies::json_text },
    Target { name: "key_line", check: ssh::key_line },
    Target { name: "line", check: admin::line },
    Target { name: "login_keys", check: login::keys },
    Target { name: "login_token", check: login::token },
    Target { name: "manifest", check: admin::manifest },
    Target { name: "names", check: values::names },
    Target { name: "origin", check: settings::origin },
    Target { name: "page", check: answers::page },
    Target { name: "pem", check: pem::pem },
    Target { name: "policy", check: beto::policy },
    Target { name: "poll", check: heads::poll },
    Target { name: "process", check: agent::process },
    Target { name: "result", check: bodies::result },
    Target { name: "review", check: kubernetes::review },
    Target { name: "run_document", check: runs::run_document },
    Target { name: "run_names", check: runs::run_names },
    Target { name: "session", check: bodies::session },
    Target { name: "settings", check: settings::settings },
    Target { name: "ssh_acknowledgement", check: ssh_feed::acknowledgement },
    Target { name: "ssh_changes", check: ssh_feed::changes },
    Target { name: "ssh_file", check: ssh_agent::file },
    Target { name: "ssh_key", check: ssh::ssh_key },
    Target { name: "ssh_names", check: ssh::ssh_names },
    Target { name: "ssh_snapshot", check: ssh_feed::snapshot },
    Target { name: "ssh_state", check: ssh_agent::state },
    Target { name: "subjects", check: kubernetes::subjects },
    Target { name: "token", check: tokens::token },
];

/// Checks the target of a name.
///
/// # Panics
///
/// Where something does not hold, or no target has the name.
pub fn check(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("no target {name}")).check)(bytes);
}

/// Checks the target of a name, and says whether its parser took the input: one that takes nothing of
/// its corpus shows little.
///
/// # Panics
///
/// As [`check`].
pub fn takes(name: &str, bytes: &[u8]) -> bool {
    TAKEN.set(false);
    check(name, bytes);
    TAKEN.get()
}

thread_local! {
    static TAKEN: Cell<bool> = const { Cell::new(false) };
}

/// A target calls it where its parser took the input, before it looks at what was read.
fn taken() {
    TAKEN.set(true);
}

/// What stands in a secret's place: no name of ours can hold it, and nobody writes it by chance.
const SECRET: &str = "zq/xj7k4w+9v2m";

/// The text with a secret at each `*`; `None` where the bytes are no text.
fn with_secrets(bytes: &[u8], secret: &str) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(|text| text.replace('*', secret))
}

/// What is told of a refusal tells no secret, and is not as long as whoever sent it likes.
fn assert_quiet(told: &str, secret: &str) {
    assert!(!told.contains(secret), "{told}");
    let bytes = format!("{:?}", secret.as_bytes());
    assert!(!told.contains(bytes.trim_matches(['[', ']'])), "{told}");
}
