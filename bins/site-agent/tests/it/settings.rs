//! What refuses to start.

use std::{os::unix::fs::PermissionsExt, path::Path};

use serde_json::Value;
use test_support::{Peer, Process, Reply, TestCa};

use crate::{
    LONG,
    agent::{Agent, exit_code, wait_for_event},
    stream::Stream,
};

async fn agent() -> Agent {
    let ca = TestCa::new();
    let peer = Peer::start(&ca, |_| Reply::Silence).await;
    Agent::new(&ca, peer.origin(), "")
}

/// The names of the wrong settings, after the agent has ended with 64.
async fn wrong_settings(agent: &Process) -> Vec<String> {
    assert_eq!(exit_code(agent).await, Some(64));
    let events = agent.lines().into_iter().map(|line| line.text);
    let events = events.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    events.map(|event| event["setting.name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_mistake_is_told_at_once_and_no_token() {
    let agent = agent().await;
    let mut command = agent.command_for(Path::new("/no/such/program"));
    std::fs::write(agent.path("token"), "the-secret in two words").unwrap();
    command
        .env("SITE_API_URL", "https://site.example/v1")
        .env("SITE_API_CA_FILE", agent.path("handler.sh"))
        .env("SITE_AGENT_LOG", "what=ever=is");
    let process = Process::start(command).unwrap();
    assert_eq!(
        wrong_settings(&process).await,
        ["SITE_AGENT_LOG", "SITE_API_URL", "SITE_API_CA_FILE", "SITE_API_TOKEN_FILE", "--handler"]
    );
    assert!(process.lines().iter().all(|line| !line.text.contains("the-secret")));
    assert!(!agent.path("state").exists(), "nothing is made before the settings are right");
}

#[tokio::test]
async fn each_missing_setting_is_named() {
    let agent = agent().await;
    for name in ["SITE_API_URL", "SITE_API_CA_FILE", "SITE_API_TOKEN_FILE"] {
        let mut command = agent.command();
        command.env_remove(name);
        assert_eq!(wrong_settings(&Process::start(command).unwrap()).await, [name]);
    }
}

#[tokio::test]
async fn wrong_arguments_end_with_64() {
    let agent = agent().await;
    for arguments in [
        ["--limit", "0"],
        ["--wait", "26"],
        ["--handler-timeout", "0"],
        ["--no", ""],
        ["--handler", "b"],
    ] {
        let mut command = agent.command();
        command.args(arguments);
        assert_eq!(exit_code(&Process::start(command).unwrap()).await, Some(64), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_second_agent_on_the_same_state_folder_ends_with_73() {
    let agent = agent().await;
    let first = agent.start();
    let folder_is_locked = async || agent.path("state/journal").exists().then_some(());
    test_support::eventually(LONG, "the first agent to open its journal", folder_is_locked).await;
    assert_eq!(exit_code(&agent.start()).await, Some(73));
    assert!(first.exit().is_none());
}

#[tokio::test]
async fn the_state_of_another_site_api_or_a_damaged_one_is_not_used() {
    let agent = agent().await;
    std::fs::create_dir(agent.path("state")).unwrap();
    let journal = agent.path("state/journal");
    std::fs::write(&journal, "{\"journal\":1,\"origin\":\"https://other.example\"}\n").unwrap();
    assert_eq!(exit_code(&agent.start()).await, Some(64));
    std::fs::write(&journal, "what is this?\n").unwrap();
    assert_eq!(exit_code(&agent.start()).await, Some(70));
}

#[tokio::test]
async fn a_state_folder_that_others_could_write_into_is_not_used() {
    let agent = agent().await;
    let state = agent.path("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(exit_code(&agent.start()).await, Some(70));
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0);
}

#[tokio::test]
async fn arguments_with_a_hyphen_reach_the_handler_after_two_hyphens() {
    let ca = TestCa::new();
    let stream = Stream::of(1);
    let served = stream.clone();
    let peer = Peer::start(&ca, move |request| served.answer(request)).await;
    let agent = Agent::new(&ca, peer.origin(), "echo \"[\\\"$1\\\",\\\"$2\\\"]\"");
    let mut command = agent.command();
    command.args(["--", "-x", "--state"]);
    let process = Process::start(command).unwrap();
    wait_for_event(&process, "message", "command.answered").await;
    assert_eq!(stream.outputs(), ["[\"-x\",\"--state\"]"]);
}
