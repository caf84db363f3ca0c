//! From `site-admin` to a poll that waits: the hint of the program that enqueues wakes it.

use std::time::{Duration, Instant};

use crate::support::{Api, LONG};

/// How many commands are delivered, and how many of them promptly at the least: the machine may do
/// something else now and then.
const ROUNDS: u64 = 16;
const PROMPT: usize = 12;

/// A quarter of what passes between two looks without a hint, which is a second. Looks alone would
/// be as fast as this for every fourth command, and for 12 of 16 in one run of thousands.
const PROMPTLY: Duration = Duration::from_millis(250);

#[tokio::test]
async fn a_command_is_delivered_long_before_the_next_look() {
    let (api, _) = Api::with_commands(0).await;
    api.listening_for_hints().await;
    let mut took = Vec::new();
    for round in 1..=ROUNDS {
        let poll = api.parked(api.poll(&format!("after={}&wait=25", round - 1))).await;
        enqueue(&api, round);
        let enqueued = Instant::now();
        let page = tokio::time::timeout(LONG, poll).await.unwrap().unwrap().json();
        took.push(enqueued.elapsed());
        assert_eq!(page["commands"][0]["seq"], round);
    }
    let prompt = took.iter().filter(|took| **took < PROMPTLY).count();
    assert!(prompt >= PROMPT, "{took:?}");
}

/// Returns when the program has ended.
fn enqueue(api: &Api, round: u64) {
    let line = format!("{{\"key\":\"round-{round}\",\"kind\":\"test\",\"body\":{{}}}}\n");
    let site = &api.place.site;
    let file = site.file("round");
    std::fs::write(&file, line).unwrap();
    let (file, environment) = (file.display().to_string(), site.environment);
    let stream = ["commands", "enqueue", "--site", &site.site, "--environment", environment];
    site.admin(&[&stream[..], &["--lines", &file]].concat()).unwrap();
}
