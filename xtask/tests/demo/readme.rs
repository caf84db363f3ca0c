//! Every command of the README is run: those of the walk here, `cargo xtask demo` beside it, and
//! `cargo xtask test` is what runs this.

use std::{fs, path::Path, process::Command, time::Duration};

use test_support::{
    Process, bin, eventually, free_port,
    postgres::{Cluster, Machine, Options},
    process::LastSignal,
};

use crate::root;

const DATABASE: &str = "site_control";
const STEP_WITHIN: Duration = Duration::from_secs(60);

/// The blocks of commands, in order.
fn blocks() -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let parts = readme.split("```sh\n").skip(1);
    parts.map(|part| part.split_once("```").unwrap().0.to_owned()).collect()
}

#[test]
fn the_ci_runs_the_test_command_of_the_readme() {
    assert_eq!(blocks()[..2], ["cargo xtask demo\n", "cargo xtask test\n"]);
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(ci.lines().any(|line| line.trim() == "exec cargo xtask test"), "{ci}");
}

#[tokio::test]
async fn the_walk_of_the_readme_connects_a_runtime() {
    let mut blocks = blocks().into_iter().skip(2);
    // These two lines are what `cargo xtask test` did before it ran this.
    let build = "cargo build --workspace --bins\nexport PATH=\"$PWD/target/debug:$PATH\"\n";
    assert_eq!(blocks.next().unwrap(), build);

    let machine = Machine::of_this_process(&root().join("target"));
    let installation = machine.postgres(|what| eprintln!("{what}")).unwrap();
    let cluster = Cluster::start(&installation, Options::default()).await.unwrap();
    let admin = cluster.superuser("postgres").await.unwrap();
    admin.batch_execute(&format!("CREATE DATABASE {DATABASE}")).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("admin.url"), cluster.superuser_url(DATABASE)).unwrap();
    fs::create_dir(folder.path().join("examples")).unwrap();
    let handler = "examples/checksum-handler";
    fs::copy(root().join(handler), folder.path().join(handler)).unwrap();

    // The last line asks at once; it is asked again until the handler has answered.
    let mut script: Vec<String> = blocks.collect();
    let last = script.pop().unwrap();
    let (enqueue, show) = last.split_once("site-admin commands show").unwrap();
    let walk = format!("set -eu\n{}\n{enqueue}\necho walked\nwait", script.concat());
    let walk = walk.replace("8443", &free_port().unwrap().to_string());
    let walking = Process::start_ending_by(shell(&walk, folder.path()), LastSignal::Kill).unwrap();
    walking
        .wait_for_line("its last line", STEP_WITHIN, |line| line == "walked")
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", walking.tail()));

    let producer =
        "SITE_COORDINATION_PRODUCER_DATABASE_URL_FILE=urls/site_coordination_producer.url";
    let show = format!("{producer} site-admin commands show{show}");
    let shown = eventually(STEP_WITHIN, "the result", async || {
        let output = shell(&show, folder.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.contains("succeeded").then_some(text)
    })
    .await;
    assert!(shown.contains("sha256"), "{shown}");
    walking.kill();
    cluster.stop().await.unwrap();
}

fn shell(script: &str, folder: &Path) -> Command {
    let programs = bin("site-admin").parent().unwrap().to_owned();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(folder).env("PATH", path);
    command.env("SITE_API_METRICS_LISTEN", "127.0.0.1:0");
    command
}
