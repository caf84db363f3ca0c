//! SIGKILL: nothing lost, nothing twice, nothing out of order, and no two tries at the same time.

use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use test_support::{Peer, Random, TestCa, eventually};

use crate::{LONG, agent::Agent, stream::Stream};

/// The longest pause between a run of the handler and a kill: about what a command takes.
const LONGEST_PAUSE: Duration = Duration::from_millis(60);

#[tokio::test]
async fn killed_at_twenty_random_moments_every_result_is_stored_once_and_in_order() {
    // More than twenty times the runs that are waited for and those of the moments after them.
    let count = 140;
    let ca = TestCa::new();
    let all = usize::try_from(count).unwrap();
    let stream = Stream::of(count);
    let served = stream.clone();
    let peer = Peer::start(&ca, move |request| served.answer(request)).await;
    // The answer differs each time that the handler is run: a repeated run whose first result was
    // already sent would be a conflict. Two tries at the same time would meet at the lock.
    let script = "exec 9> $DIR/lock
        flock -n 9 || echo overlap >> $DIR/overlaps
        echo $SEQ >> $DIR/runs
        sleep 0.02
        echo \"{\\\"seq\\\":$SEQ,\\\"pid\\\":$$}\"";
    let agent = Agent::new(&ca, peer.origin(), script);
    let mut random = Random::of_this_test();
    for _ in 0..20 {
        let process = agent.start();
        let runs = agent.lines("runs").len() + usize::try_from(random.within(1..4)).unwrap();
        let begun = async || (agent.lines("runs").len() >= runs).then_some(());
        eventually(LONG, "more runs of the handler", begun).await;
        // The moment of the kill is what is random here; nothing waits for this time to pass.
        tokio::time::sleep(random.duration(LONGEST_PAUSE)).await;
        process.kill();
        assert!(stream.results().len() < all, "it was killed after its work");
    }
    let _last = agent.start();
    stream.wait_for_results(all).await;
    let seqs: Vec<u64> = stream
        .outputs()
        .iter()
        .map(|output| serde_json::from_str::<serde_json::Value>(output).unwrap()["seq"].as_u64())
        .map(Option::unwrap)
        .collect();
    assert_eq!(seqs, (1..=count).collect::<Vec<_>>());
    assert_eq!(agent.lines("overlaps"), Vec::<String>::new());
    let runs: Vec<u64> = agent.lines("runs").iter().map(|seq| seq.parse().unwrap()).collect();
    assert!(runs.is_sorted(), "{runs:?}");
}

#[tokio::test]
async fn a_handler_that_outlives_its_agent_is_ended_before_the_next_try() {
    let ca = TestCa::new();
    let stream = Stream::of(1);
    let served = stream.clone();
    let peer = Peer::start(&ca, move |request| served.answer(request)).await;
    let script = "if [ $TRY = 1 ]; then echo $$ > $DIR/first; exec sleep 1000; fi
        if grep -q sleep /proc/$(cat $DIR/first)/cmdline; then echo '\"both\"'; else echo '\"alone\"'; fi";
    let agent = Agent::new(&ca, peer.origin(), script);
    let process = agent.start();
    agent.wait_for_file("first").await;
    process.kill();
    let first: i32 = agent.lines("first")[0].parse().unwrap();
    let first = Pid::from_raw(first).unwrap();
    test_kill_process(first).expect("it should have outlived its agent, or this shows nothing");
    let _next = agent.start();
    stream.wait_for_results(1).await;
    assert_eq!(stream.outputs(), ["\"alone\""]);
}

#[tokio::test]
async fn what_a_dead_handler_left_behind_is_ended_before_the_next_try() {
    let ca = TestCa::new();
    let stream = Stream::of(1);
    let served = stream.clone();
    let peer = Peer::start(&ca, move |request| served.answer(request)).await;
    // The first try writes until nobody reads any more, and dies of SIGPIPE. Its child works on,
    // and holds the lock.
    let script = "exec 9> $DIR/lock
        flock -n 9 || { echo '\"both\"'; exit 0; }
        [ $TRY = 1 ] || { echo '\"alone\"'; exit 0; }
        sleep 1000 > /dev/null 2>&1 &
        echo $$ $! > $DIR/first
        while echo; do sleep 0.01; done";
    let agent = Agent::new(&ca, peer.origin(), script);
    let process = agent.start();
    agent.wait_for_file("first").await;
    let first = agent.lines("first").remove(0);
    let (leader, child) = first.split_once(' ').unwrap();
    process.kill();
    eventually(LONG, "SIGPIPE to end the handler", async || (!works(leader)).then_some(())).await;
    assert!(works(child), "it should have outlived its agent, or this shows nothing");
    let _next = agent.start();
    stream.wait_for_results(1).await;
    assert_eq!(stream.outputs(), ["\"alone\""]);
    assert!(!works(child));
}

/// Whether there is such a process, and it is no zombie.
fn works(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
