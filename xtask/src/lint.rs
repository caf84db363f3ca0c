//! `cargo xtask lint`: what can be said about the code without running it.

use std::{error::Error, fs, io};

use crate::{
    docs,
    rules::{self, Workspace},
    step::{self, command, root},
    stop::Stop,
    tools,
};

/// Checks formatting, the generated pages, the dependency rules, clippy, the documentation, and what
/// `cargo deny` guards.
pub(crate) async fn run(stop: &Stop) -> Result<(), Box<dyn Error>> {
    step::run(stop, command("cargo", &["fmt", "--all", "--check"])).await?;
    eprintln!("\n== generated pages");
    docs::check()?;
    dependencies(stop).await?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    step::run(stop, command("cargo", &clippy)).await?;
    let mut documentation = command("cargo", &["doc", "--workspace", "--no-deps"]);
    documentation.env("RUSTDOCFLAGS", "--deny warnings");
    step::run(stop, documentation).await?;
    deny(stop).await
}

/// Who may touch what.
async fn dependencies(stop: &Stop) -> Result<(), Box<dyn Error>> {
    eprintln!("\n== dependency rules");
    let metadata = ["metadata", "--format-version=1", "--no-deps", "--locked"];
    let text = step::read(stop, command("cargo", &metadata)).await?.join("\n");
    let violations = rules::violations(&Workspace::parse(&text, contexts()?)?);
    for violation in &violations {
        eprintln!("{violation}");
    }
    match violations.len() {
        0 => Ok(()),
        1 => Err("a dependency breaks a rule".into()),
        many => Err(format!("{many} dependencies break a rule").into()),
    }
}

/// The contexts: a crate that owns tables has its migrations in a folder of its name.
fn contexts() -> io::Result<Vec<String>> {
    fs::read_dir(root().join("migrations"))?
        .map(|folder| Ok(folder?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// Licences, bans and sources. Advisories need a database from the network that changes without
/// us: they are for a schedule, not for every run.
async fn deny(stop: &Stop) -> Result<(), Box<dyn Error>> {
    let check = ["--offline", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    let program = tools::program(stop, &tools::DENY).await?;
    Ok(step::run(stop, command(program, &check)).await?)
}
