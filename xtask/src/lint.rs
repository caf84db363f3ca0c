//! `cargo xtask lint`: what can be said about the code without running it.

use std::error::Error;

use crate::{
    rules::{self, Workspace},
    step::{self, command},
    stop::Stop,
};

/// Checks formatting, clippy, the dependency rules, and licences and bans where `cargo-deny` is
/// installed.
pub(crate) async fn run(stop: &Stop) -> Result<(), Box<dyn Error>> {
    step::run(stop, command("cargo", &["fmt", "--all", "--check"])).await?;
    dependencies(stop).await?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    step::run(stop, command("cargo", &clippy)).await?;
    deny(stop).await
}

/// Who may touch what.
async fn dependencies(stop: &Stop) -> Result<(), Box<dyn Error>> {
    eprintln!("\n== dependency rules");
    let metadata = ["metadata", "--format-version=1", "--no-deps", "--locked"];
    let text = step::read(stop, command("cargo", &metadata)).await?.join("\n");
    let violations = rules::violations(&Workspace::parse(&text)?);
    for violation in &violations {
        eprintln!("{violation}");
    }
    match violations.len() {
        0 => Ok(()),
        1 => Err("a dependency breaks a rule".into()),
        many => Err(format!("{many} dependencies break a rule").into()),
    }
}

async fn deny(stop: &Stop) -> Result<(), Box<dyn Error>> {
    if step::read(stop, command("cargo-deny", &["--version"])).await.is_err() {
        eprintln!("\ncargo-deny is not installed: licences, bans and sources are not checked");
        return Ok(());
    }
    let check = ["check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    // Advisories need the network and change without us: they are the CI schedule's, not every
    // run's.
    Ok(step::run(stop, command("cargo-deny", &check)).await?)
}
