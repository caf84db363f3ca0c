//! What refuses to start.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::Value;
use test_support::Process;

use super::{agent, wait_for_message};
use crate::agent::exit_code;

/// The names of the wrong settings, after the agent has ended with 64.
async fn wrong_settings(agent: &Process) -> Vec<String> {
    assert_eq!(exit_code(agent).await, Some(64));
    let events = agent.lines().into_iter().map(|line| line.text);
    let events = events.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    events.map(|event| event["setting.name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_mistake_is_told_at_once_and_no_token() {
    let (agent, _feed) = agent().await;
    let mut command = agent.command();
    fs::write(agent.path("token"), "the-secret in two words").unwrap();
    command
        .env("SSH_ACCESS_SITE_API_URL", "https://site.example/v1")
        .env_remove("SITE_API_CA_FILE");
    let process = Process::start(command).unwrap();
    let names = ["SSH_ACCESS_SITE_API_URL", "SITE_API_CA_FILE", "SITE_API_TOKEN_FILE"];
    assert_eq!(wrong_settings(&process).await, names);
    assert!(process.lines().iter().all(|line| !line.text.contains("the-secret")));
    assert!(!agent.path("state").exists(), "nothing is made before the settings are right");
}

#[tokio::test]
async fn wrong_arguments_end_with_64() {
    let (agent, _feed) = agent().await;
    for arguments in [
        ["--limit", "0"],
        ["--limit", "1001"],
        ["--wait", "26"],
        ["--attest-every", "0"],
        ["--no", ""],
    ] {
        let process = agent.start_with(&arguments);
        assert_eq!(exit_code(&process).await, Some(64), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_folder_that_is_no_good_ends_with_64_and_says_why() {
    let (agent, _feed) = agent().await;
    let keys = agent.path("keys");
    let refused = async |why: &str| {
        let process = agent.start();
        assert_eq!(exit_code(&process).await, Some(64), "{why}");
        let event = wait_for_failure(&process);
        assert!(event.contains(why), "{event}");
    };
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o775)).unwrap();
    refused("has the mode 0775").await;
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&keys, Some(65_534), None).unwrap();
    refused("belongs to the user 65534").await;
    std::os::unix::fs::chown(&keys, Some(0), None).unwrap();
    fs::rename(&keys, agent.path("elsewhere")).unwrap();
    refused("can't be opened").await;
    symlink(agent.path("elsewhere"), &keys).unwrap();
    refused("can't be opened").await;
    assert!(!agent.path("state").exists());
}

#[tokio::test]
async fn a_state_folder_that_others_could_write_into_ends_with_70_and_says_why() {
    let (agent, _feed) = agent().await;
    let state = agent.path("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let process = agent.start();
    assert_eq!(exit_code(&process).await, Some(70));
    let error = wait_for_failure(&process);
    assert!(error.contains("everybody could write into it"), "{error}");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
}

fn wait_for_failure(process: &Process) -> String {
    let last = process.lines().pop().unwrap().text;
    let event: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(event["message"], "agent.failed");
    event["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_second_agent_on_either_folder_ends_with_73() {
    let (agent, feed) = agent().await;
    let first = agent.start();
    feed.wait_for_match().await;
    assert_eq!(exit_code(&agent.start()).await, Some(73));
    let (keys, another) = (agent.path("keys"), agent.path("another"));
    fs::create_dir(&another).unwrap();
    fs::set_permissions(&another, fs::Permissions::from_mode(0o755)).unwrap();
    for (folder, state) in [(&keys, &another), (&another, &agent.path("state"))] {
        let process = Process::start(agent.command_for(folder, state)).unwrap();
        assert_eq!(exit_code(&process).await, Some(73));
        let error = wait_for_failure(&process);
        assert!(error.contains("another agent uses"), "{error}");
    }
    assert!(first.exit().is_none());
}

#[tokio::test]
async fn the_state_of_another_site_api_is_not_used_and_a_damaged_one_is_made_up_for() {
    let (agent, feed) = agent().await;
    feed.add("alice", 1);
    let process = agent.start();
    feed.wait_for_match().await;
    process.kill();
    let state = agent.path("state/ssh-keys");
    let text = fs::read_to_string(&state).unwrap();
    let origin = text.split("\"origin\":\"").nth(1).unwrap().split('"').next().unwrap();
    fs::write(&state, text.replace(origin, "https://other.example")).unwrap();
    assert_eq!(exit_code(&agent.start()).await, Some(64));
    fs::write(&state, &text[..text.len() / 2]).unwrap();
    feed.add("alice", 2);
    let process = agent.start();
    let event = wait_for_message(&process, "ssh_keys.state_damaged").await;
    assert_eq!(event["alarm.name"], "ssh_state_damaged");
    feed.wait_for_match().await;
    assert_eq!(feed.snapshots(), 2);
}
