//! Polls: a pure read of the stream, and the wait for what comes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Api, FIRST_SESSION, LONG, Place, SECOND_SESSION, SITE, dump};

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
        assert!(command["runId"].as_str().unwrap().starts_with("run-"));
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
    api.open_session(FIRST_SESSION, 1).await;
    let stale = api.send(&api.poll("after=0")).await;
    assert_eq!(stale.code(), "stale_generation");
    assert_eq!(stale.json()["generation"], 2);
    let of = |generation, session| api.poll("after=0").writer(generation, session);
    assert_eq!(api.send(&of(3, FIRST_SESSION)).await.code(), "history_diverged");
    assert_eq!(api.send(&of(2, SECOND_SESSION)).await.code(), "stale_generation");
    assert_eq!(api.send(&of(2, FIRST_SESSION)).await.status, 200);
}

#[tokio::test]
async fn a_cursor_below_what_was_removed_is_told_where_to_go_on() {
    let (api, _) = Api::with_commands(3).await;
    let page = api.send(&api.poll("after=0&limit=2")).await.json();
    let trim = "UPDATE site_coordination.stream_head SET trimmed_seq = 2";
    api.sql().await.batch_execute(trim).await.unwrap();
    for query in ["after=0", "after=1&wait=25"] {
        let answer = api.send(&api.poll(query)).await;
        assert_eq!(answer.code(), "cursor_trimmed");
        assert_eq!(answer.json()["after"], 2);
        assert_eq!(answer.json()["afterDigest"], page["nextDigest"]);
    }
    let digest = page["nextDigest"].as_str().unwrap();
    let next = api.send(&api.poll(&format!("after=2&afterDigest={digest}"))).await;
    assert_eq!(seqs(&next.json()), [3]);
}

#[tokio::test]
async fn a_cancel_is_told_with_its_count_until_the_caller_knows_it() {
    let (api, ids) = Api::with_commands(3).await;
    let parked = api.parked(api.poll("after=3&limit=0&wait=25")).await;
    cancel(&api, 2, 1).await;
    let page = tokio::time::timeout(LONG, parked).await.unwrap().unwrap().json();
    let told = json!([{"commandId": ids[1], "seq": 2}]);
    assert_eq!((seqs(&page), &page["cancelRev"]), (vec![], &json!(1)));
    assert_eq!(page["cancelled"], told);
    // A full page tells it as well, and whoever knows it is not told again.
    let page = api.send(&api.poll("after=0")).await.json();
    assert_eq!((seqs(&page), &page["cancelled"]), (vec![1, 2, 3], &told));
    let page = api.send(&api.poll("after=0&cancelRev=1")).await.json();
    assert_eq!((&page["cancelRev"], page.get("cancelled")), (&json!(1), None));
    // With a limit of 0 no command is brought, however many there are.
    let page = api.send(&api.poll("after=0&limit=0&cancelRev=1")).await.json();
    assert_eq!((seqs(&page), &page["nextAfter"]), (vec![], &json!(0)));
}

/// Marks a command as a producer does, and tells the listeners.
async fn cancel(api: &Api, seq: u64, rev: u64) {
    let cancel = format!(
        "BEGIN;
         UPDATE site_coordination.stream_head SET cancel_rev = {rev};
         INSERT INTO site_coordination.command_cancel (site, environment, seq, cancel_rev)
         VALUES ('{SITE}', 'slurm', {seq}, {rev});
         COMMIT"
    );
    api.sql().await.batch_execute(&cancel).await.unwrap();
}

#[tokio::test]
async fn a_voided_command_is_shown_and_marked() {
    let (api, ids) = Api::with_commands(2).await;
    let void = format!(
        "BEGIN;
         UPDATE site_coordination.stream_progress SET done_seq = 1;
         INSERT INTO site_coordination.command_void (site, environment, seq, reason)
         VALUES ('{SITE}', 'slurm', 1, 'expired');
         COMMIT"
    );
    api.sql().await.batch_execute(&void).await.unwrap();
    let page = api.send(&api.poll("after=0")).await.json();
    assert_eq!(page["commands"][0]["commandId"], ids[0].as_str());
    assert_eq!(page["commands"][0]["voided"], true);
    assert!(page["commands"][1].get("voided").is_none());
    assert_eq!(page["head"]["seq"], 2);
}

#[tokio::test]
async fn the_end_of_a_commands_time_is_told_with_its_microseconds() {
    let place = Place::prepare().await;
    let ids = place.enqueue(&["{}"]);
    let api = place.start().await;
    let set = "UPDATE site_coordination.command SET not_after = '2027-01-01T00:00:00Z'";
    api.sql().await.batch_execute(set).await.unwrap();
    let page = api.send(&api.poll("after=0")).await.json();
    assert_eq!(page["commands"][0]["commandId"], ids[0].as_str());
    assert_eq!(page["commands"][0]["notAfter"], "2027-01-01T00:00:00.000000Z");
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
