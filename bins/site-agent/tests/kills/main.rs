//! SIGKILL at random moments, of each program on a command's way: nothing is lost, no command gets
//! a second result, the order holds. Real programs, on a PostgreSQL of their own with `fsync` on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod history;
mod scenario;

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use scenario::Scenario;
use test_support::{Random, eventually};

const KILLS: u32 = 20;

/// The longest pause between a result and a kill: about what a command takes.
const LONGEST_PAUSE: Duration = Duration::from_millis(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn site_api_may_be_killed_at_any_moment() {
    let mut random = Random::of_this_test();
    let mut scenario = Scenario::start().await;
    for _ in 0..KILLS {
        scenario.some_results_and_a_moment(&mut random, LONGEST_PAUSE).await;
        scenario.site_api.kill();
        scenario.site_api = scenario.site.start_site_api().await.unwrap();
    }
    scenario.finish().await.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_may_be_killed_at_any_moment() {
    let mut random = Random::of_this_test();
    let mut scenario = Scenario::start().await;
    for _ in 0..KILLS {
        scenario.some_results_and_a_moment(&mut random, LONGEST_PAUSE).await;
        // The agent alone: its handler goes on, as it would when the kernel picked the agent.
        scenario.agent.signal(Signal::KILL);
        scenario.agent.wait_exit(Duration::from_secs(30)).await.unwrap();
        scenario.agent = scenario.start_agent();
    }
    scenario.finish().await.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_backend_may_be_killed_at_any_moment() {
    let mut random = Random::of_this_test();
    let scenario = Scenario::start().await;
    for _ in 0..KILLS {
        scenario.some_results_and_a_moment(&mut random, LONGEST_PAUSE).await;
        // The server takes all of its backends down with one that was killed, and recovers. One
        // that has ended by itself in between was not killed.
        eventually(Duration::from_secs(60), "a backend to be killed", async || {
            let backends = scenario.backends().await?;
            let backend = random.choose(&backends)?;
            kill_process(Pid::from_raw(*backend)?, Signal::KILL).ok()
        })
        .await;
    }
    scenario.finish().await.check();
}
