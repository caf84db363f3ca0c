//! The manifests in deploy/kubernetes and the page to them name what the programs have. They are read
//! as text.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod callers;
mod page;
mod ssh_access;
mod workloads;

use std::{
    fs,
    path::{Path, PathBuf},
};

const FILES: [&str; 6] = [
    "token-review.yaml",
    "site-api.yaml",
    "execution-authority.yaml",
    "runtime.yaml",
    "ssh-access-settings.yaml",
    "ssh-access.yaml",
];

/// The value of a variable of a container.
fn value(manifest: &str, name: &str) -> String {
    let (_, after) = manifest.split_once(&format!("- name: {name}\n")).unwrap();
    let value = after.lines().next().unwrap().trim().strip_prefix("value: ").unwrap();
    value.trim_matches('\'').to_owned()
}

fn is_setting(name: &str) -> bool {
    let prefixes = ["SITE_API_", "SITE_COORDINATION_", "SITE_AGENT_", "SSH_ACCESS_"];
    let character = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    prefixes.iter().any(|prefix| name.starts_with(prefix)) && name.bytes().all(character)
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

fn page() -> String {
    text("docs/KUBERNETES.md")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
