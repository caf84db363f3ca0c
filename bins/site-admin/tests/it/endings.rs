//! `site-admin commands wait`, `cancel` and `void`: how commands end, and who says so.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::eventually;

use crate::support::{Done, Stream, admin};

impl Stream {
    /// Stores a result for the command that is due, as a Runtime does.
    pub(crate) async fn finish(&self, outcome: &str) {
        let body = format!("{{\"outcome\":\"{outcome}\"}}");
        let sql = self.sql().await;
        sql.batch_execute(&format!(
            "WITH due AS (
                 UPDATE site_coordination.stream_progress SET done_seq = done_seq + 1
                  WHERE site = 'north-1' AND environment = 'slurm' RETURNING done_seq
             ), stored AS (
                 INSERT INTO site_coordination.command_result
                        (site, environment, seq, digest, outcome, generation)
                 SELECT 'north-1', 'slurm', done_seq, sha256('{body}'), '{outcome}', 1 FROM due
             )
             INSERT INTO site_coordination.result_body
             SELECT 'north-1', 'slurm', done_seq, '{body}' FROM due"
        ))
        .await
        .unwrap();
    }

    fn on(&self, command: &str, key: &str, more: &[&str]) -> Done {
        self.commands(command, &[&["--key", key], more].concat()).run()
    }

    fn void(&self, key: &str) -> Done {
        self.on("void", key, &["--note", "the cluster is gone", "--json"])
    }
}

fn object(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[tokio::test]
async fn each_way_to_end_has_an_exit_code() {
    let stream = Stream::create().await;
    for key in ["succeeded", "failed", "rejected"] {
        stream.enqueue(key, b"{}").ok();
        stream.finish(key).await;
    }
    stream.enqueue("voided", b"{}").ok();
    stream.void("voided").ok();
    stream.enqueue("waiting", b"{}").ok();
    for (key, code) in
        [("succeeded", 0), ("failed", 10), ("rejected", 11), ("voided", 12), ("waiting", 75)]
    {
        let done = stream.on("wait", key, &["--within", "0", "--json"]);
        assert_eq!((done.code, done.err.as_str()), (code, ""), "{done:?}");
        assert_eq!(object(&done.out)["state"], key);
        let shown = stream.on("show", key, &["--json"]).ok();
        assert_eq!(done.out, shown, "it shows the command");
    }
    stream.on("wait", "unknown", &[]).refused(66, "the stream has no such command");
}

#[tokio::test]
async fn it_waits_for_an_ending_that_is_still_to_come() {
    let stream = Stream::create().await;
    stream.enqueue("k1", b"{}").ok();
    stream.enqueue("k2", b"{}").ok();
    let sql = stream.sql().await;
    for (key, code) in [("k1", 10), ("k2", 12)] {
        let waiting = stream.commands("wait", &["--key", key, "--within", "60"]);
        let waiting = std::thread::spawn(move || waiting.run());
        let listens = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND query ILIKE 'listen%'";
        eventually(Duration::from_secs(30), "a listening wait", async || {
            let listening: i64 = sql.query_one(listens, &[]).await.unwrap().get(0);
            (listening > 0).then_some(())
        })
        .await;
        match key {
            "k1" => stream.finish("failed").await,
            _ => drop(stream.void(key).ok()),
        }
        let done = waiting.join().unwrap();
        assert_eq!(done.code, code, "{done:?}");
    }
}

#[tokio::test]
async fn a_cancel_is_one_mark_however_often_it_is_asked_for() {
    let stream = Stream::create().await;
    for key in ["k1", "k2", "k3"] {
        stream.enqueue(key, b"{}").ok();
    }
    let first = object(&stream.on("cancel", "k2", &["--json"]).ok());
    assert_eq!((&first["cancelRev"], &first["changed"]), (&json!(1), &json!(true)));
    let again = object(&stream.on("cancel", "k2", &["--json"]).ok());
    assert_eq!((&again["cancelRev"], &again["changed"]), (&json!(1), &json!(false)));
    assert_eq!(again["cancelledAt"], first["cancelledAt"]);
    assert!(stream.on("cancel", "k2", &[]).ok().contains("was cancelled already"));
    assert!(stream.on("cancel", "k3", &[]).ok().contains(": cancelled at "));

    let listed = stream.commands("list", &["--json"]).run().ok();
    let listed: Vec<Value> = listed.lines().map(object).collect();
    let cancelled = |row: &Value| !row["cancelledAt"].is_null();
    assert_eq!(listed.iter().map(cancelled).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(listed[1]["state"], "waiting", "a wish, not an ending");

    stream.finish("succeeded").await;
    stream.on("cancel", "k1", &[]).refused(65, "the command has an ending already");
    stream.on("cancel", "k4", &[]).refused(66, "the stream has no such command");
}

#[tokio::test]
async fn only_the_command_that_is_due_is_voided_and_the_reason_is_kept() {
    let stream = Stream::create().await;
    for key in ["k1", "k2", "k3"] {
        stream.enqueue(key, b"{}").ok();
    }
    stream.void("k2").refused(65, "an earlier command has no ending yet");
    stream.finish("succeeded").await;
    stream.void("k1").refused(65, "the command has a result already");
    let voided = object(&stream.void("k2").ok());
    assert_eq!(voided["reason"], "operator");
    assert_eq!(voided["note"], "the cluster is gone");

    let again = stream.on("void", "k2", &["--note", "another", "--json"]).ok();
    assert_eq!(object(&again), voided, "the first note stays");
    let shown = object(&stream.on("show", "k2", &["--json"]).ok());
    assert_eq!((&shown["state"], &shown["result"]), (&json!("voided"), &json!(null)));
    assert_eq!(shown["voided"]["note"], "the cluster is gone");
    assert!(stream.on("show", "k2", &[]).ok().contains("operator: the cluster is gone"));
    stream.void("k3").ok();
    stream.void("k4").refused(66, "the stream has no such command");
}

#[tokio::test]
async fn a_void_needs_a_note_that_is_one() {
    let stream = Stream::create().await;
    stream.enqueue("k1", b"{}").ok();
    stream.on("void", "k1", &[]).refused(64, "--note");
    let long = "x".repeat(1025);
    for note in ["", "  ", "a\nb", "a\u{7}", &long] {
        stream.on("void", "k1", &["--note", note]).refused(64, "a note is");
    }
    assert_eq!(object(&stream.on("show", "k1", &["--json"]).ok())["state"], "waiting");
}

#[tokio::test]
async fn the_status_has_a_line_for_each_stream() {
    let stream = Stream::create().await;
    for key in ["k1", "k2", "k3"] {
        stream.enqueue(key, b"{}").ok();
    }
    stream.finish("succeeded").await;
    stream.on("cancel", "k3", &[]).ok();
    let other = ["commands", "enqueue", "--site", "south-1", "--environment", "k8s"];
    let one = ["--key", "k", "--kind", "test", "--body", "-"];
    let producer = crate::support::PRODUCER;
    let other = admin(&[&other[..], &one].concat()).with(producer, &stream.url());
    other.input(b"{}").run().ok();
    let sql = stream.sql().await;
    let older = "UPDATE site_coordination.command SET created_at = created_at - interval '2 hours'
                  WHERE site = 'north-1'";
    sql.batch_execute(older).await.unwrap();

    let status = |more: &[&str]| {
        let status = admin(&[&["status"], more].concat()).with(producer, &stream.url());
        status.run().ok()
    };
    let rows = status(&["--json"]);
    let rows: Vec<Value> = rows.lines().map(object).collect();
    assert_eq!(rows.len(), 2);
    for (field, value) in [
        ("site", json!("north-1")),
        ("environment", json!("slurm")),
        ("lastSeq", json!(3)),
        ("doneSeq", json!(1)),
        ("backlog", json!(2)),
        ("generation", json!(1)),
        ("sessionId", json!(null)),
        ("cancelRev", json!(1)),
        ("trimmedSeq", json!(0)),
    ] {
        assert_eq!(rows[0][field], value, "{field}");
    }
    assert_eq!(rows[0]["due"]["seq"], 2);
    let age = rows[0]["due"]["ageSeconds"].as_u64().unwrap();
    assert!((7_200..10_000).contains(&age), "{age}");
    assert_eq!(rows[1]["backlog"], 1);

    let table = status(&["--site", "north-1"]);
    let words: Vec<Vec<_>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(words.len(), 2);
    assert_eq!(words[1][..8], ["north-1", "slurm", "3", "1", "2", "2h", "1", "1"]);
    assert_eq!(status(&["--site", "nowhere", "--json"]), "");
}
