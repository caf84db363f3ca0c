//! `site-admin commands`: one command in, and what became of it.

use serde_json::{Value, json};

use crate::support::Stream;

const BACKLOG: &str = "SITE_COORDINATION_BACKLOG";

/// Valid JSON that no reader into values keeps: a key twice, half a surrogate, numbers beyond any
/// range, and deep.
fn odd() -> String {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    format!(r#"{{"b" :  1.10,"a":[1e400,-0], "a":"\ud800", "deep":{deep}}}"#)
}

#[tokio::test]
async fn a_command_is_enqueued_once_and_known_again() {
    let stream = Stream::create().await;
    let first = stream.enqueue("k1", b"{\"a\": 1}\n").ok();
    let words: Vec<_> = first.trim_end().split(' ').collect();
    assert_eq!((words[0], words[2], words.len()), ("1", "new", 3), "{first}");
    assert!(words[1].starts_with("cmd_"), "{first}");
    // White space around a body is not part of it.
    let again = stream.enqueue("k1", b"  {\"a\": 1}").ok();
    assert_eq!(again, first.replace("new", "known"));
    assert!(stream.enqueue("k2", b"{}").ok().starts_with("2 cmd_"));
    assert_eq!(stream.count().await, 2);
}

#[tokio::test]
async fn another_command_under_a_known_key_is_refused() {
    let stream = Stream::create().await;
    stream.enqueue("k1", b"{\"a\": 1}").ok();
    let said = "the key k1 stands for another command";
    stream.enqueue("k1", b"{\"a\":1}").refused(65, said);
    let with = |more: &[&str]| {
        let one = [&["--key", "k1", "--body", "-"], more].concat();
        stream.commands("enqueue", &one).input(b"{\"a\": 1}").run()
    };
    with(&["--kind", "other"]).refused(65, said);
    with(&["--kind", "test", "--run-id", "r"]).refused(65, said);
    assert_eq!(stream.count().await, 1);
}

#[tokio::test]
async fn a_body_that_is_none_is_refused() {
    let stream = Stream::create().await;
    let large = format!("\"{}\"", "x".repeat(1024 * 1024));
    for (body, said) in [
        (b"".as_slice(), "it is not JSON"),
        (b"{", "it is not JSON"),
        (b"{} {}", "it is not JSON"),
        (b"\"\xff\"", "UTF-8"),
        (large.as_bytes(), "at most 1 MiB"),
        (large.repeat(3).as_bytes(), "at most 1 MiB"),
    ] {
        stream.enqueue("k1", body).refused(65, said);
    }
    let missing = ["--key", "k1", "--kind", "test", "--body", "/no/such/file"];
    stream.commands("enqueue", &missing).run().refused(66, "/no/such/file");
    assert_eq!(stream.count().await, 0);
}

#[tokio::test]
async fn a_command_is_shown_with_its_exact_body_and_result() {
    let stream = Stream::create().await;
    let body = odd();
    let one = ["--key", "k1", "--kind", "test", "--run-id", "run-1", "--body", "-"];
    stream.commands("enqueue", &one).input(body.as_bytes()).run().ok();
    let result = odd().replace("\"b\"", "\"outcome\"");
    let sql = stream.sql().await;
    sql.execute(
        "INSERT INTO site_coordination.command_result
                (site, environment, seq, digest, outcome, generation)
         VALUES ('north-1', 'slurm', 1, sha256('x'), 'failed', 1)",
        &[],
    )
    .await
    .unwrap();
    sql.execute(
        "INSERT INTO site_coordination.result_body VALUES ('north-1', 'slurm', 1, $1)",
        &[&result],
    )
    .await
    .unwrap();
    let shown = stream.commands("show", &["--key", "k1"]).run().ok();
    for exact in [&body, &result] {
        assert!(shown.contains(exact.as_str()), "{shown}");
    }
    let id = shown.split_once("command   ").unwrap().1[..36].to_owned();
    assert_eq!(stream.commands("show", &[&id]).run().ok(), shown);
}

#[tokio::test]
async fn a_command_without_a_result_is_shown_without_one() {
    let stream = Stream::create().await;
    stream.enqueue("k1", b"{\"a\":1}").ok();
    let shown = stream.commands("show", &["--key", "k1", "--json"]).run().ok();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    for (field, value) in [
        ("seq", json!(1)),
        ("key", json!("k1")),
        ("kind", json!("test")),
        ("runId", json!(null)),
        ("body", json!({"a": 1})),
        ("result", json!(null)),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
}

#[tokio::test]
async fn a_command_that_is_not_in_the_stream_is_not_shown() {
    let stream = Stream::create().await;
    stream.enqueue("k1", b"{}").ok();
    let said = "the stream has no such command";
    stream.commands("show", &["--key", "k2"]).run().refused(66, said);
    let unknown = format!("cmd_{}", "0".repeat(32));
    stream.commands("show", &[&unknown]).run().refused(66, said);
    stream.commands("show", &["--key", "k1", &unknown]).run().refused(64, "cannot be used with");
}

#[tokio::test]
async fn commands_are_listed_in_order_within_their_bounds() {
    let stream = Stream::create().await;
    for key in ["a", "b", "c"] {
        stream.enqueue(key, b"\"a body is not listed\"").ok();
    }
    let list = |more: &[&str]| {
        let printed = stream.commands("list", more).run().ok();
        assert!(!printed.contains("a body"), "{printed}");
        let rows = printed.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
        rows.map(|row| format!("{} {} {} {}", row[0], row[2], row[4], row[5])).collect::<Vec<_>>()
    };
    assert_eq!(list(&[]), ["1 waiting test a", "2 waiting test b", "3 waiting test c"]);
    assert_eq!(list(&["--after", "1"]), ["2 waiting test b", "3 waiting test c"]);
    assert_eq!(list(&["--after", "1", "--limit", "1"]), ["2 waiting test b"]);
    assert_eq!(list(&["--after", "3"]), [""; 0]);
}

#[tokio::test]
async fn a_key_is_of_its_stream() {
    let stream = Stream::create().await;
    stream.enqueue("k1", b"{}").ok();
    let other = |site: &str, environment: &str| {
        let words = ["commands", "enqueue", "--site", site, "--environment", environment];
        let one = ["--key", "k1", "--kind", "other", "--body", "-"];
        let run = crate::support::admin(&[&words[..], &one].concat()).input(b"1");
        run.with(crate::support::PRODUCER, &stream.url()).run().ok()
    };
    for (site, environment) in [("north-1", "k8s"), ("south-1", "slurm"), ("North-1", "slurm")] {
        assert!(other(site, environment).starts_with("1 cmd_"), "{site} {environment}");
    }
    assert_eq!(stream.count().await, 4);
}

#[tokio::test]
async fn a_time_after_which_it_is_voided_is_part_of_the_command() {
    let stream = Stream::create().await;
    let with = |time: &str| {
        let one = ["--key", "k1", "--kind", "test", "--body", "-", "--not-after", time];
        stream.commands("enqueue", &one).input(b"{}").run()
    };
    assert!(with("2040-01-01T01:00:00+01:00").ok().contains(" new"));
    assert!(with("2040-01-01T00:00:00Z").ok().contains(" known"), "the same moment");
    let said = "the key k1 stands for another command";
    with("2040-01-01T00:00:01Z").refused(65, said);
    stream.enqueue("k1", b"{}").refused(65, said);
    with("2040-01-01").refused(64, "notAfter is a time in RFC 3339");
    with("1969-12-31T23:59:59Z").refused(65, "1970");

    let line = r#"{"key":"k1","kind":"test","notAfter":"2040-01-01T00:00:00Z","body":{}}"#;
    let lines = |text: &str| stream.commands("enqueue", &["--lines", "-"]).input(text.as_bytes());
    assert!(lines(line).run().ok().contains(" known"));
    let wrong = line.replace("2040-01-01T00", "2040-13-01T00");
    lines(&wrong).run().refused(65, "-, line 1: notAfter is a time in RFC 3339");
}

#[tokio::test]
async fn a_full_stream_refuses_more_and_still_knows_what_it_has() {
    let stream = Stream::create().await;
    let enqueue = |key: &str, limit: &str| {
        let one = ["--key", key, "--kind", "test", "--body", "-"];
        stream.commands("enqueue", &one).with(BACKLOG, limit).input(b"{}").run()
    };
    enqueue("k1", "2").ok();
    enqueue("k2", "2").ok();
    enqueue("k3", "2").refused(69, "2");
    assert!(enqueue("k2", "2").ok().contains(" known"));
    assert!(enqueue("k3", "3").ok().contains(" new"));
    for wrong in ["0", "-1", "1000001", "many", ""] {
        enqueue("k4", wrong).refused(64, BACKLOG);
    }
    assert_eq!(stream.count().await, 3);
}
