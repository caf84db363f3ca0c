//! A flood of tokens that nobody knows.

use std::{fs, sync::Arc, time::Duration};

use test_support::{KubeApi, eventually};
use tokio::{task::JoinSet, time::Instant};

use crate::support::{Api, Cluster, LONG, Place, Request};

/// Reviews at once.
const AT_ONCE: usize = 4;

async fn in_cluster(seconds: &str) -> (Api, Cluster) {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    let mut command = place.command();
    cluster.settings(&mut command);
    command
        .env("SITE_API_TOKEN_REVIEWS", AT_ONCE.to_string())
        .env("SITE_API_TOKEN_REVIEW_SECONDS", seconds);
    (place.start_by(command).await, cluster)
}

/// A token of the right form that is nobody's, of about `bytes`.
fn garbage(number: usize, bytes: usize) -> String {
    format!("eyJhbGciOiJub25lIn0.{number:0bytes$}.c2lnbmVk")
}

/// Sends as many garbage tokens as `count`, on as many connections as `callers`, and returns how often
/// each code was answered: refused, busy.
async fn flood(api: &Api, callers: usize, count: usize, bytes: usize) -> (usize, usize) {
    let mut tasks = JoinSet::new();
    let requests = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for _ in 0..callers {
        let (wire, requests) = (api.wire.clone(), Arc::clone(&requests));
        let poll = api.poll("after=0").without("authorization").without("connection");
        tasks.spawn(async move {
            let (mut refused, mut busy) = (0, 0);
            let mut connection = wire.open().await;
            loop {
                let number = requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if number >= count {
                    return (refused, busy);
                }
                let request: Request = poll.clone().bearer(&garbage(number, bytes));
                connection.write(&request.bytes()).await;
                match connection.answer().await.unwrap().code().as_str() {
                    "unauthenticated" => refused += 1,
                    "overloaded" => busy += 1,
                    other => panic!("{other}"),
                }
            }
        });
    }
    let (mut refused, mut busy) = (0, 0);
    while let Some(counts) = tasks.join_next().await {
        let counts = counts.unwrap();
        refused += counts.0;
        busy += counts.1;
    }
    (refused, busy)
}

/// What the process holds in memory, in KiB.
fn resident(api: &Api) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", api.process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn is_bounded(api: &KubeApi) {
    let most = api.most_at_once();
    assert!(most <= AT_ONCE, "{most} at once");
}

/// Each request of a flood is larger than what a process may keep of it.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "what was measured")]
async fn a_flood_of_garbage_is_refused_within_the_bound_and_leaves_nothing_behind() {
    const BYTES: usize = 7_000;
    const COUNT: usize = 2_000;
    let (api, cluster) = in_cluster("5").await;
    // Whatever is made once is made by the first.
    flood(&api, 16, COUNT / 4, BYTES).await;
    let before = resident(&api);
    let (refused, busy) = flood(&api, 16, COUNT, BYTES).await;
    let after = resident(&api);
    println!("{refused} refused, {busy} too many; {before} KiB before, {after} KiB after");
    assert!(refused > COUNT / 2, "{refused} refused");
    is_bounded(&cluster.api);
    let kept = after.saturating_sub(before);
    let sent = (COUNT * BYTES / 1024) as u64;
    assert!(kept < sent / 4, "{kept} KiB were kept of {sent}");
    assert_eq!(api.alarms().await, [""; 0]);
    nothing_is_under_way(&api).await;
}

async fn nothing_is_under_way(api: &Api) {
    eventually(LONG, "the end of the reviews", async || {
        (api.metric("token_reviews_under_way").await == 0.0).then_some(())
    })
    .await;
}

/// A Runtime whose token was renewed, or that calls after a restart of ours.
#[tokio::test]
async fn who_claims_to_be_granted_something_is_let_in_during_a_flood() {
    let (api, cluster) = in_cluster("5").await;
    let api = Arc::new(api);
    // More at once than may wait with tokens that nobody knows, for as long as this test wants.
    let flooding = tokio::spawn({
        let api = Arc::clone(&api);
        async move { flood(&api, 150, usize::MAX, 500).await }
    });
    let turned_away = || api.metric("token_reviews_turned_away_total");
    eventually(LONG, "a flood", async || (turned_away().await > 0.0).then_some(())).await;
    let before = turned_away().await;
    for _ in 0..20 {
        assert_eq!(api.answer_to(&cluster.token()).await.status, 200);
    }
    assert!(turned_away().await > before, "strangers were turned away meanwhile");
    flooding.abort();
    assert!(flooding.await.unwrap_err().is_cancelled());
    is_bounded(&cluster.api);
    nothing_is_under_way(&api).await;
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "what was measured")]
async fn a_cached_caller_is_served_while_every_review_is_held() {
    let (api, cluster) = in_cluster("10").await;
    let api = Arc::new(api);
    let token = cluster.token();
    assert_eq!(api.answer_to(&token).await.status, 200);
    let reviewed = Instant::now();
    cluster.api.hold();
    // More than there may be requests at once.
    let mut tasks = JoinSet::new();
    for number in 0..400 {
        let request = api.poll("after=0").without("authorization").bearer(&garbage(number, 500));
        let wire = api.wire.clone();
        tasks.spawn(async move { wire.send(&request).await.status });
    }
    eventually(LONG, "a full house", async || {
        (cluster.api.under_way() > 0 && api.metric("http_requests_total").await > 300.0)
            .then_some(())
    })
    .await;
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let began = Instant::now();
        assert_eq!(api.answer_to(&token).await.status, 200);
        slowest = slowest.max(began.elapsed());
    }
    let elapsed = reviewed.elapsed();
    println!("the slowest of twenty took {slowest:?}; {elapsed:?} since the review");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert!(!tasks.is_empty() && cluster.api.under_way() > 0, "it is still held");
    is_bounded(&cluster.api);
    assert_eq!(cluster.api.reviews_of(&token), 1);
    cluster.api.release();
    while let Some(status) = tasks.join_next().await {
        assert!([401, 503].contains(&status.unwrap()));
    }
    assert_eq!(api.answer_to(&cluster.token()).await.status, 200, "who is new is let in again");
}
