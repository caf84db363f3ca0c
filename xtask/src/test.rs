//! `cargo xtask test`: from whatever the machine has to one line that says how it went.

use std::{
    error::Error,
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

use test_support::{openssh, postgres::TEST_POSTGRES, rabbitmq};

use crate::{
    lint,
    postgres::{self, TestPostgres},
    step::{self, StepError, command, root},
    stop::Stop,
    tools,
};

/// Where `.config/nextest.toml` has the report written.
const REPORT: &str = "target/nextest/default/junit.xml";

/// Runs everything, or with arguments the tests that they choose.
pub(crate) async fn run(stop: &Stop, arguments: Vec<String>) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let everything = arguments.is_empty();
    let nextest = tools::program(stop, &tools::NEXTEST).await?;
    if everything {
        lint::run(stop).await?;
    }
    // With the tests, so that the binaries are built once with the same features.
    let build = ["build", "--workspace", "--bins", "--tests"];
    step::run(stop, command("cargo", &build)).await?;

    // Not interrupted: a package is installed whole. The tests that need a node start their own.
    rabbitmq::Search::of_this_process().find_or_install(|what| eprintln!("{what}"))?;
    openssh::Search::of_this_process().find_or_install(|what| eprintln!("{what}"))?;
    let TestPostgres { cluster, file } = postgres::start(stop).await?;
    let chosen = if everything { vec!["--workspace".to_owned()] } else { arguments };
    let mut tests = command(nextest, &["nextest", "run"]);
    // What a test leaves behind when it is killed goes with the cluster.
    let temporary = cluster.folder().join("tests");
    fs::create_dir(&temporary)?;
    tests.args(chosen).env(TEST_POSTGRES, &file).env("TMPDIR", &temporary);
    forget_report()?;
    let result = step::run(stop, tests).await;
    let examples = match &result {
        Ok(()) if everything => examples(stop, &file, &temporary).await,
        _ => Ok(0),
    };
    cluster.stop().await?;
    let counts = fs::read_to_string(root().join(REPORT)).ok().and_then(|text| Counts::of(&text));
    if let (Err(StepError::Failed(..)), Some(counts)) = (&result, &counts) {
        println!("\n{} of {} tests FAILED.", counts.failed, counts.run);
    }
    result?;
    let counts = counts.ok_or("the tests left no report")?;

    let examples = examples?;
    let took = Duration::from_secs(started.elapsed().as_secs());
    println!("\nOK: {} tests and {examples} examples passed in {took:?}.", counts.run);
    Ok(())
}

/// Runs the documentation's examples, some of them against the cluster, and returns how many passed.
async fn examples(stop: &Stop, cluster: &Path, temporary: &Path) -> Result<u32, StepError> {
    let arguments = ["test", "--workspace", "--doc"];
    eprintln!("\n== cargo {}", arguments.join(" "));
    let mut examples = command("cargo", &arguments);
    examples.env(TEST_POSTGRES, cluster).env("TMPDIR", temporary);
    let printed = step::read(stop, examples).await?;
    let passed = printed.iter().filter_map(|line| line.strip_prefix("test result: ok. "));
    Ok(passed.filter_map(|line| line.split_once(' ')?.0.parse::<u32>().ok()).sum())
}

/// So that the counts are never those of an earlier run.
fn forget_report() -> io::Result<()> {
    match fs::remove_file(root().join(REPORT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[derive(Debug, PartialEq)]
struct Counts {
    run: u32,
    failed: u32,
}

impl Counts {
    /// Reads the attributes of a JUnit report's root.
    fn of(report: &str) -> Option<Self> {
        let root = report.split_once("<testsuites ")?.1.split_once('>')?.0;
        let number = |name| -> Option<u32> {
            let value = root.split_once(&format!("{name}=\""))?.1;
            value.split_once('"')?.0.parse().ok()
        };
        Some(Self { run: number("tests")?, failed: number("failures")? + number("errors")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_whole_report() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="nextest-run" tests="31" failures="2" errors="1" uuid="x" time="8.1">
            <testsuite name="one" tests="9" failures="0" errors="0"></testsuite></testsuites>"#;
        assert_eq!(Counts::of(report), Some(Counts { run: 31, failed: 3 }));
    }

    #[test]
    fn a_report_without_counts_is_none() {
        assert_eq!(Counts::of("<testsuites name=\"nextest-run\">"), None);
    }
}
