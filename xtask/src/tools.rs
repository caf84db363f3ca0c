//! Programs that a run needs beside cargo, installed into target/tools where the machine has none.

use std::path::PathBuf;

use crate::{
    step::{self, StepError, command, root},
    stop::Stop,
};

/// A program from the registry, in a version that this toolchain builds.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    /// What makes it say its version.
    version_arguments: &'static [&'static str],
}

/// Runs the tests.
pub(crate) const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    version: "0.9.143",
    version_arguments: &["nextest", "--version"],
};

/// Checks licences, bans and sources.
pub(crate) const DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", version_arguments: &["--version"] };

/// Builds and runs the fuzz targets.
pub(crate) const FUZZ: Tool =
    Tool { name: "cargo-fuzz", version: "0.13.2", version_arguments: &["--version"] };

/// The program of a tool. Installing one takes minutes, once.
pub(crate) async fn program(stop: &Stop, tool: &Tool) -> Result<PathBuf, StepError> {
    let Tool { name, version, version_arguments } = tool;
    if step::read(stop, command(name, version_arguments)).await.is_ok() {
        return Ok(PathBuf::from(name));
    }
    let tools = root().join("target/tools");
    let program = tools.join("bin").join(name);
    if !program.is_file() {
        eprintln!("{name} is missing: installing it into {} (minutes)", tools.display());
        let package = format!("{name}@{version}");
        let mut install = command("cargo", &["install", "--locked", &package, "--root"]);
        install.arg(tools);
        step::run(stop, install).await?;
    }
    Ok(program)
}
