//! The benchmark, as short as it can be: that it measures everything and says it in the shape that it
//! promises. What the figures are worth is not for a test.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, process::Command, time::Duration};

use serde_json::Value;
use test_support::{
    Process, bin,
    process::{Exit, LastSignal, Stream, forget_cargo},
};

/// Generous: a machine under load is no defect.
const WITHIN: Duration = Duration::from_secs(500);

/// What issue and page speak of; each is a figure's name.
const OF_COMMANDS: [&str; 19] = [
    "1 stream, pages of 64, a PUT each",
    "1 stream, a PUT each with next=1",
    "1 stream, the product's SQL by pgbench",
    "1 stream, batches of 16",
    "1 stream, batches of 64",
    "2 streams, pages of 64, a PUT each",
    "2 streams, batches of 64",
    "2 Sites, pages of 64, a PUT each",
    "idle delivery by HTTPS, p50",
    "idle delivery by HTTPS, p99",
    "idle delivery within one process, p50",
    "a result stored by HTTPS, p50",
    "polls that find nothing, one after the other",
    "from the start to the first answer",
    "an idle listener with a waiting poll, resident",
    "an idle listener with a waiting poll, transactions",
    "an idle listener with a waiting poll, database connections",
    "2000 commands before, one by one, next=1",
    "2 listeners idle, transactions",
];

const OF_SSH: [&str; 12] = [
    "`site-admin keys import` of 700 keys, keys",
    "the same file again, keys",
    "from the registry into the feed, keys",
    "2,000 keys into new files, keys",
    "the stream alone, beside COPY, keys",
    "every file right already, beside COPY, keys",
    "2,000 keys until they are attested",
    "`site-api`, peak with 2,000 keys beside 1,000",
    "`site-agent ssh-keys`, peak with 2,000 keys beside 1,000",
    "a key added until its file is there, 10 keys in force, p50",
    "a key removed until that is acknowledged, 10 keys in force, p50",
    "from the start of `site-admin keys add` until the file is there, p50",
];

#[tokio::test]
async fn a_quick_run_prints_each_figure_as_a_line_and_writes_no_page() {
    assert_shape("commands", &OF_COMMANDS).await;
}

#[tokio::test]
async fn a_quick_run_with_keys_does_the_same() {
    assert_shape("ssh", &OF_SSH).await;
}

async fn assert_shape(name: &str, figures: &[&str]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/benchmarks/{name}.md"));
    let before = fs::read(&page).ok();
    let mut command = Command::new(bin("xtask"));
    command.args(["bench", name, "--quick", "--json"]);
    forget_cargo(&mut command);
    let bench = Process::start_ending_by(command, LastSignal::Terminate).unwrap();
    assert_eq!(bench.wait_exit(WITHIN).await.unwrap(), Exit::Code(0), "{}", bench.tail());

    let printed = bench.lines().into_iter().filter(|line| line.stream == Stream::Out);
    let lines: Vec<Value> =
        printed.map(|line| serde_json::from_str(&line.text).expect(&line.text)).collect();
    for line in &lines {
        let fields = line.as_object().unwrap();
        let names: Vec<&str> = fields.keys().map(String::as_str).collect();
        assert_eq!(names, ["figure", "floor", "ratio", "unit", "value"], "{line}");
        assert!(line["figure"].is_string() && line["unit"].is_string(), "{line}");
        assert!(line["value"].as_f64().is_some_and(|value| value >= 0.0), "{line}");
        let floor = line["floor"].as_f64();
        assert!(line["floor"].is_null() || floor.is_some_and(|floor| floor > 0.0), "{line}");
        assert_eq!(line["ratio"].is_number(), floor.is_some(), "{line}");
    }
    for figure in figures {
        let named = |line: &&Value| line["figure"].as_str() == Some(*figure);
        assert_eq!(lines.iter().filter(named).count(), 1, "{figure}");
    }
    assert_eq!(fs::read(&page).ok(), before, "a quick run is no page");
}
