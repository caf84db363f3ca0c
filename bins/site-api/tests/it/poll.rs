//! Polls: a pure read of the stream, and the wait for what comes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Api, LONG, Place, dump};

/// A body as no serialiser would write it: it comes out as it went in.
const ODD: &str = r#"{"b" :  1.10,"a":[ 1e400,-0 ], "a":"\u0000\ud800é/\/"}"#;

fn seqs(page: &Value) -> Vec<u64> {
    let commands = page["commands"].as_array().unwrap();
    commands.iter().map(|command| command["seq"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_poll_is_a_pure_and_repeatable_read() {
    let (api, ids) = Api::with_commands(3).await;
    let before = dump(&api.sql().await).await;
    let answer = api.send(&api.poll("after=0")).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let first = answer.json();
    assert_eq!(seqs(&first), [1, 2, 3]);
    for (command, id) in first["commands"].as_array().unwrap().iter().zip(&ids) {
        assert_eq!(command["commandId"], id.as_str());
        assert_eq!(command["kind"], "test");
        assert!(command.get("runId").is_none(), "it belongs to no Run");
    }
    assert_eq!((&first["nextAfter"], &first["lastSeq"]), (&json!(3), &json!(3)));
    assert_eq!(first["head"]["seq"], 1);
    assert!(first.get("superseded").is_none());
    let again = api.send(&api.poll("after=0")).await.json();
    assert_eq!(again["commands"], first["commands"]);
    assert_eq!(dump(&api.sql().await).await, before);
}

#[tokio::test]
async fn pages_follow_each_other_by_their_cursor_and_digest() {
    let (api, _) = Api::with_commands(5).await;
    let mut query = "limit=2".to_owned();
    let mut got = Vec::new();
    for _ in 0..3 {
        let page = api.send(&api.poll(&query)).await.json();
        got.push(seqs(&page));
        let digest = page["nextDigest"].as_str().unwrap();
        query = format!("limit=2&after={}&afterDigest={digest}", page["nextAfter"]);
    }
    assert_eq!(got, [vec![1, 2], vec![3, 4], vec![5]]);
    let end = api.send(&api.poll(&query)).await.json();
    assert_eq!((seqs(&end), &end["nextAfter"]), (vec![], &json!(5)));
}

#[tokio::test]
async fn the_text_of_a_body_comes_out_as_it_went_in() {
    let place = Place::prepare().await;
    place.enqueue(&[ODD]);
    let api = place.start().await;
    let answer = api.send(&api.poll("after=0")).await;
    assert!(answer.text().contains(&format!("\"body\":{ODD}")), "{}", answer.text());
}

#[tokio::test]
async fn a_page_holds_a_mebibyte_of_bodies_and_always_one_command() {
    let place = Place::prepare().await;
    let half = format!("\"{}\"", "x".repeat(512 * 1024 - 2));
    let whole = format!("\"{}\"", "y".repeat(1024 * 1024 - 2));
    place.enqueue(&[&half, &half, "1", &whole, &whole]);
    let api = place.start().await;
    let mut got = Vec::new();
    for after in [0, 2, 3, 4] {
        got.push(seqs(&api.send(&api.poll(&format!("after={after}"))).await.json()));
    }
    assert_eq!(got, [vec![1, 2], vec![3], vec![4], vec![5]]);
}

#[tokio::test]
async fn a_cursor_that_is_not_of_this_history_is_told_apart() {
    let (api, _) = Api::with_commands(2).await;
    let ahead = api.send(&api.poll("after=3")).await;
    assert_eq!(ahead.code(), "cursor_ahead");
    assert_eq!(ahead.json()["lastSeq"], 2);
    let wrong = "f".repeat(64);
    for after in [0, 1, 2] {
        let answer = api.send(&api.poll(&format!("after={after}&afterDigest={wrong}"))).await;
        assert_eq!(answer.code(), "history_diverged", "after {after}");
    }
    // A wait changes nothing about it.
    assert_eq!(api.send(&api.poll("after=3&wait=25")).await.code(), "cursor_ahead");
}

#[tokio::test]
async fn a_generation_that_is_not_the_current_one_is_refused() {
    let (api, _) = Api::with_commands(1).await;
    let raise = "UPDATE site_coordination.stream_progress SET generation = 2";
    api.sql().await.batch_execute(raise).await.unwrap();
    let stale = api.send(&api.poll("after=0")).await;
    assert_eq!(stale.code(), "stale_generation");
    assert_eq!(stale.json()["generation"], 2);
    let of = |generation: &str| {
        api.poll("after=0").without("runtime-generation").header("runtime-generation", generation)
    };
    assert_eq!(api.send(&of("3")).await.code(), "history_diverged");
    assert_eq!(api.send(&of("2")).await.status, 200);
}

#[tokio::test]
async fn a_wait_without_news_ends_in_an_empty_page() {
    let (api, _) = Api::with_commands(1).await;
    let started = Instant::now();
    let page = api.send(&api.poll("after=1&wait=1")).await.json();
    assert!(started.elapsed() >= Duration::from_millis(900), "it waited {:?}", started.elapsed());
    assert_eq!((seqs(&page), &page["nextAfter"]), (vec![], &json!(1)));
    assert!(page.get("superseded").is_none());
}

#[tokio::test]
async fn a_command_reaches_the_poll_that_waits_for_it() {
    let (api, _) = Api::with_commands(0).await;
    let poll = api.parked(api.poll("after=0&wait=25")).await;
    let ids = api.place.enqueue(&["{}"]);
    let page = poll.await.unwrap().json();
    assert_eq!(page["commands"][0]["commandId"], ids[0].as_str());
}

#[tokio::test]
async fn a_later_poll_releases_the_one_that_waits() {
    let (api, _) = Api::with_commands(0).await;
    let first = api.parked(api.poll("after=0&wait=25")).await;
    let wire = api.wire.clone();
    let request = api.poll("after=0&wait=25");
    let second = tokio::spawn(async move { wire.send(&request).await });
    let released = tokio::time::timeout(LONG, first).await.unwrap().unwrap().json();
    assert_eq!((seqs(&released), &released["superseded"]), (vec![], &json!(true)));
    api.place.enqueue(&["{}"]);
    assert_eq!(seqs(&second.await.unwrap().json()), [1], "the later one goes on");
}

#[tokio::test]
async fn a_caller_that_hangs_up_leaves_nothing_behind() {
    let (api, _) = Api::with_commands(0).await;
    let poll = api.parked(api.poll("after=0&wait=25")).await;
    poll.abort();
    api.process
        .wait_for_line("the caller's end", LONG, |line| line.contains("\"http.status\":499"))
        .await
        .unwrap();
    api.place.enqueue(&["{}"]);
    assert_eq!(seqs(&api.send(&api.poll("after=0")).await.json()), [1]);
}
