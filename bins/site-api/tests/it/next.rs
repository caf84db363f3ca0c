//! Results that bring the next commands along: one round trip a command.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use test_support::eventually;

use crate::support::{Api, FIRST_SESSION, LONG, dump};

const DONE: &[u8] = br#"{"outcome":"succeeded"}"#;
const DONE_TEXT: &str = r#"{"outcome":"succeeded"}"#;

fn seqs(page: &Value) -> Vec<u64> {
    let commands = page["commands"].as_array().unwrap();
    commands.iter().map(|command| command["seq"].as_u64().unwrap()).collect()
}

/// What is the same in two pages that are read one after the other.
fn content(page: &Value) -> Value {
    let mut page = page.clone();
    let fields = page.as_object_mut().unwrap();
    fields.remove("serverTime").unwrap();
    fields.remove("head");
    page
}

#[tokio::test]
async fn a_result_brings_what_a_poll_after_it_would() {
    let (api, ids) = Api::with_commands(4).await;
    let mut page = api.send(&api.poll("after=0&limit=1")).await.json();
    for (index, id) in ids.iter().enumerate() {
        assert_eq!(page["commands"][0]["commandId"], id.as_str());
        let request = api.result(id, DONE).query("next=1");
        let answer = api.send(&request).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let seq = index as u64 + 1;
        assert_eq!(answer.json()["receipt"]["seq"], seq);
        let again = api.send(&request).await;
        assert_eq!((again.status, &again.json()["receipt"]), (200, &answer.json()["receipt"]));
        assert_eq!(content(&again.json()["next"]), content(&answer.json()["next"]));
        let polled = api.send(&api.poll(&format!("after={seq}&limit=1"))).await.json();
        page = answer.json()["next"].clone();
        assert_eq!(content(&page), content(&polled));
        assert_eq!(page["head"]["seq"], polled["head"]["seq"]);
    }
    assert_eq!((seqs(&page), &page["nextAfter"]), (vec![], &json!(4)));
}

#[tokio::test]
async fn a_result_without_next_brings_the_receipt_alone() {
    let (api, ids) = Api::with_commands(2).await;
    let answer = api.send(&api.result(&ids[0], DONE)).await.json();
    assert!(answer.get("seq").is_some() && answer.get("next").is_none(), "{answer}");
    let answer = api.send(&api.batch(&[(&ids[1], DONE_TEXT)])).await.json();
    assert!(answer.get("results").is_some() && answer.get("next").is_none(), "{answer}");
}

#[tokio::test]
async fn a_batch_brings_what_comes_after_its_leading_results() {
    let (api, ids) = Api::with_commands(5).await;
    let batch = |indices: &[usize], query: &str| {
        let results: Vec<_> =
            indices.iter().map(|index| (ids[*index].as_str(), DONE_TEXT)).collect();
        api.batch(&results).query(query)
    };
    // The third lacks its predecessor, so what comes after the first two counts.
    let answer = api.send(&batch(&[0, 1, 3], "next=2")).await.json();
    assert_eq!(seqs(&answer["next"]), [3, 4]);
    let answer = api.send(&batch(&[4, 2], "next=2")).await.json();
    assert_eq!(answer["results"][0]["status"], 409);
    assert_eq!(answer["results"][1]["status"], 201);
    assert!(answer.get("next").is_none(), "the first was refused: {answer}");
}

#[tokio::test]
async fn a_problem_has_no_next_and_does_not_wait() {
    let (api, ids) = Api::with_commands(2).await;
    let began = Instant::now();
    let answer = api.send(&api.result(&ids[1], DONE).query("next=1&wait=25")).await;
    assert_eq!(answer.code(), "predecessor_missing");
    assert!(answer.json().get("next").is_none());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());

    // Nor where the command has an ending that a list would go on after, and it takes no poll's place.
    let void = "BEGIN;
        UPDATE site_coordination.stream_progress SET done_seq = 2;
        INSERT INTO site_coordination.command_void (site, environment, seq, reason)
        VALUES ('north-1', 'slurm', 1, 'expired'), ('north-1', 'slurm', 2, 'expired');
        COMMIT";
    api.sql().await.batch_execute(void).await.unwrap();
    let poll = api.parked(api.poll("after=2&wait=25")).await;
    let began = Instant::now();
    let answer = api.send(&api.result(&ids[1], DONE).query("next=1&wait=25")).await;
    assert_eq!(answer.code(), "already_voided");
    assert!(answer.json().get("next").is_none());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(!poll.is_finished());
    api.place.enqueue(&["{}", "{}", "{}"]);
    let page = tokio::time::timeout(LONG, poll).await.unwrap().unwrap().json();
    assert_eq!(seqs(&page), [3]);
    // In a batch it leads, and the batch waits like a poll.
    let answer = api.send(&api.batch(&[(&ids[1], DONE_TEXT)]).query("next=1&wait=25")).await;
    assert_eq!(answer.json()["results"][0]["problem"]["code"], "already_voided");
    assert_eq!(seqs(&answer.json()["next"]), [3]);
}

/// Sends a result with a wait, and returns when it is stored and its answer waits.
async fn waiting(
    api: &Api,
    id: &str,
    query: &str,
) -> tokio::task::JoinHandle<crate::support::Answer> {
    let request = api.result(id, DONE).query(query);
    let wire = api.wire.clone();
    let sent = tokio::spawn(async move { wire.send(&request).await });
    stored(api, 1).await;
    sent
}

/// Returns when so many results are stored.
async fn stored(api: &Api, count: i64) {
    let sql = api.sql().await;
    eventually(LONG, "the result", async || {
        let query = "SELECT count(*) FROM site_coordination.command_result";
        let stored: i64 = sql.query_one(query, &[]).await.unwrap().get(0);
        (stored == count).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_wait_is_answered_when_a_producer_enqueues() {
    let (api, ids) = Api::with_commands(1).await;
    let answer = waiting(&api, &ids[0], "next=4&wait=25").await;
    assert!(!answer.is_finished());
    api.place.enqueue(&["{}", "{}"]);
    let answer = tokio::time::timeout(LONG, answer).await.unwrap().unwrap();
    assert_eq!(answer.status, 201);
    assert_eq!(seqs(&answer.json()["next"]), [2]);
}

#[tokio::test]
async fn a_wait_without_news_ends_with_the_receipt_and_an_empty_page() {
    let (api, ids) = Api::with_commands(1).await;
    let began = Instant::now();
    let answer = api.send(&api.result(&ids[0], DONE).query("next=1&wait=1")).await;
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    assert_eq!((answer.status, seqs(&answer.json()["next"])), (201, vec![]));
}

#[tokio::test]
async fn the_end_of_the_process_releases_a_wait_with_the_receipt() {
    let (api, ids) = Api::with_commands(1).await;
    let answer = waiting(&api, &ids[0], "next=1&wait=25").await;
    api.process.signal(Signal::TERM);
    let answer = tokio::time::timeout(LONG, answer).await.unwrap().unwrap();
    assert_eq!((answer.status, seqs(&answer.json()["next"])), (201, vec![]));
    assert!(answer.json()["next"].get("superseded").is_none());
}

#[tokio::test]
async fn a_take_over_ends_a_wait_and_takes_no_receipt_back() {
    let (api, ids) = Api::with_commands(1).await;
    let answer = waiting(&api, &ids[0], "next=1&wait=25").await;
    api.open_session(FIRST_SESSION, 1).await;
    let answer = tokio::time::timeout(LONG, answer).await.unwrap().unwrap();
    assert_eq!((answer.status, &answer.json()["receipt"]["seq"]), (201, &json!(1)));
}

#[tokio::test]
async fn a_result_whose_answer_is_cut_is_stored_and_acknowledged_again() {
    let (api, ids) = Api::with_commands(1).await;
    let answer = waiting(&api, &ids[0], "next=1&wait=25").await;
    // The caller hangs up while its answer waits.
    answer.abort();
    api.process
        .wait_for_line("the caller's end", LONG, |line| line.contains("\"http.status\":499"))
        .await
        .unwrap();
    let before = dump(&api.sql().await).await;
    assert_eq!(api.send(&api.result(&ids[0], DONE)).await.status, 200);
    assert_eq!(dump(&api.sql().await).await, before);
    // And the next Runtime's wait is nobody else's.
    let poll = api.parked(api.poll("after=1&wait=25")).await;
    api.place.enqueue(&["{}", "{}"]);
    let page = tokio::time::timeout(LONG, poll).await.unwrap().unwrap().json();
    assert_eq!(seqs(&page), [2]);
}
