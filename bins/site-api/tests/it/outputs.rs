//! Private outputs: bytes of a command, kept before its result names them.

use serde_json::json;
use test_support::eventually;

use crate::support::{Answer, Api, Connection, FIRST_SESSION, LONG, Place, dump};

const BYTES: &[u8] = b"\0\xff private {\"bytes\":1}\r\n";
/// SHA-256 of [`BYTES`], computed by `sha256sum`.
const DIGEST: &str = "4e08985a248b2b154d4bab1185da99728d728cbc6b560531985a0ecb728b3f2a";

fn result(digest: &str) -> Vec<u8> {
    format!(r#"{{"outcome":"succeeded","privateOutput":"{digest}"}}"#).into()
}

#[tokio::test]
async fn an_output_is_kept_once_and_acknowledged_with_the_same_receipt() {
    let (api, ids) = Api::with_commands(1).await;
    let first = api.send(&api.output(&ids[0], BYTES)).await;
    assert_eq!(first.status, 201, "{first:?}");
    let receipt = first.json();
    assert_eq!((&receipt["commandId"], &receipt["digest"]), (&json!(ids[0]), &json!(DIGEST)));
    assert_eq!(receipt["bytes"], BYTES.len());
    let sql = api.sql().await;
    let before = dump(&sql).await;
    let again = api.send(&api.output(&ids[0], BYTES)).await;
    assert_eq!((again.status, again.json()), (200, receipt.clone()));
    assert_eq!(dump(&sql).await, before);
    let kept = "SELECT bytes FROM site_coordination.private_output";
    let kept: Vec<u8> = sql.query_one(kept, &[]).await.unwrap().get(0);
    assert_eq!(kept, BYTES);

    assert_eq!(api.send(&api.result(&ids[0], &result(DIGEST))).await.status, 201);
    let again = api.send(&api.output(&ids[0], BYTES)).await;
    assert_eq!((again.status, again.json()), (200, receipt), "also after the result");
    let late = api.send(&api.output(&ids[0], b"more")).await;
    assert_eq!(late.code(), "result_conflict");
    assert!(late.json()["storedDigest"].is_string());
}

#[tokio::test]
async fn a_result_counts_only_with_the_output_that_it_names() {
    let (api, ids) = Api::with_commands(2).await;
    let named = api.result(&ids[0], &result(DIGEST));
    assert_eq!(api.send(&named).await.code(), "output_missing");
    assert_eq!(api.send(&api.output(&ids[0], b"other bytes")).await.status, 201);
    assert_eq!(api.send(&named).await.code(), "output_missing");
    assert_eq!(api.send(&api.output(&ids[0], BYTES)).await.status, 201);
    assert_eq!(api.send(&named).await.status, 201);
    // Another command's output is not this one's.
    assert_eq!(api.send(&api.result(&ids[1], &result(DIGEST))).await.code(), "output_missing");
    let wrong = api.result(&ids[1], &result("0A"));
    assert_eq!(fields(&api.send(&wrong).await), ["privateOutput"]);
}

#[tokio::test]
async fn an_output_of_another_digest_or_of_no_run_is_told_which_part_is_wrong() {
    let place = Place::prepare().await;
    let line = "{\"key\":\"no-run\",\"kind\":\"test\",\"body\":{}}\n";
    let file = place.site.file("line");
    std::fs::write(&file, line).unwrap();
    let file = file.display().to_string();
    let stream = ["commands", "enqueue", "--site", "north-1", "--environment", "slurm"];
    let printed = place.site.admin(&[&stream[..], &["--lines", &file]].concat()).unwrap();
    let no_run = printed.split(' ').nth(1).unwrap().to_owned();
    let api = place.start().await;
    let before = dump(&api.sql().await).await;
    assert_eq!(fields(&api.send(&api.output(&no_run, BYTES)).await), ["commandId"]);
    let other = api.output(&no_run, BYTES).body(b"other bytes");
    assert_eq!(fields(&api.send(&other).await), ["digest"]);
    let unknown = format!("cmd_{}", "0".repeat(32));
    for id in [unknown.as_str(), "k1"] {
        assert_eq!(api.send(&api.output(id, BYTES)).await.code(), "not_found");
    }
    assert_eq!(dump(&api.sql().await).await, before);
}

fn fields(answer: &Answer) -> Vec<String> {
    let problem = answer.problem();
    assert_eq!(problem.code, "invalid_request");
    problem.fields.into_iter().map(|field| field.field).collect()
}

#[tokio::test]
async fn the_number_of_outputs_of_a_command_is_bounded() {
    let (api, ids) = Api::with_commands(1).await;
    for number in 0..8 {
        let bytes = format!("the output of try {number}");
        assert_eq!(api.send(&api.output(&ids[0], bytes.as_bytes())).await.status, 201);
    }
    let ninth = api.send(&api.output(&ids[0], BYTES)).await;
    assert_eq!((ninth.code().as_str(), &ninth.json()["limit"]), ("too_many_outputs", &json!(8)));
    let first = api.send(&api.output(&ids[0], b"the output of try 0")).await;
    assert_eq!(first.status, 200);
}

#[tokio::test]
async fn an_output_that_is_not_due_or_of_a_runtime_that_was_taken_over_is_refused() {
    let (api, ids) = Api::with_commands(2).await;
    let early = api.send(&api.output(&ids[1], BYTES)).await;
    assert_eq!(
        (early.code().as_str(), &early.json()["doneSeq"]),
        ("predecessor_missing", &json!(0))
    );
    api.open_session(FIRST_SESSION, 1).await;
    let before = dump(&api.sql().await).await;
    let stale = api.send(&api.output(&ids[0], BYTES)).await;
    assert_eq!(
        (stale.code().as_str(), &stale.json()["generation"]),
        ("stale_generation", &json!(2))
    );
    let of = |generation| api.output(&ids[0], BYTES).writer(generation, FIRST_SESSION);
    assert_eq!(api.send(&of(3)).await.code(), "history_diverged");
    assert_eq!(dump(&api.sql().await).await, before);
    assert_eq!(api.send(&of(2)).await.status, 201);
    let void = "BEGIN;
        UPDATE site_coordination.stream_progress SET done_seq = 1;
        INSERT INTO site_coordination.command_void (site, environment, seq, reason)
        VALUES ('north-1', 'slurm', 1, 'expired');
        COMMIT";
    api.sql().await.batch_execute(void).await.unwrap();
    let voided = api.output(&ids[0], b"more").writer(2, FIRST_SESSION);
    let voided = api.send(&voided).await;
    assert_eq!(voided.code(), "already_voided");
    assert!(voided.json()["voidedAt"].is_string());
}

#[tokio::test]
async fn an_output_of_exactly_the_limit_is_kept() {
    let (api, ids) = Api::with_commands(1).await;
    let large = vec![7; 16 * 1024 * 1024];
    let answer = api.send(&api.output(&ids[0], &large)).await;
    assert_eq!((answer.status, &answer.json()["bytes"]), (201, &json!(large.len())));
}

/// An output whose body does not come to its end, and which is being read.
async fn unfinished(api: &Api, command_id: &str) -> Connection {
    let mut connection = api.wire.open().await;
    let bytes = api.output(command_id, BYTES).header("expect", "100-continue").bytes();
    connection.write(&bytes[..bytes.len() - 1]).await;
    connection.interim().await;
    connection
}

#[tokio::test]
async fn a_third_output_at_once_is_told_to_come_again() {
    let (api, ids) = Api::with_commands(1).await;
    let (mut first, second) = (unfinished(&api, &ids[0]).await, unfinished(&api, &ids[0]).await);
    let third = api.output(&ids[0], b"the third");
    assert_eq!(api.send(&third).await.code(), "overloaded");
    // Nobody else waits for them.
    assert_eq!(api.send(&api.poll("after=0")).await.status, 200);
    first.write(&BYTES[BYTES.len() - 1..]).await;
    assert_eq!(first.answer().await.unwrap().status, 201);
    assert_eq!(api.send(&third).await.status, 201);
    drop(second);
}

#[tokio::test]
async fn an_output_keeps_its_place_until_the_database_has_it_also_where_its_caller_hangs_up() {
    let (api, ids) = Api::with_commands(1).await;
    let (mut holder, sql) = (api.sql().await, api.sql().await);
    let lock = holder.transaction().await.unwrap();
    let table = "LOCK TABLE site_coordination.private_output IN ACCESS EXCLUSIVE MODE";
    lock.batch_execute(table).await.unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'site_coordination_api'
          AND wait_event_type = 'Lock'";
    for number in 1..=2 {
        let mut connection = api.wire.open().await;
        let bytes = format!("the output of try {number}");
        connection.write(&api.output(&ids[0], bytes.as_bytes()).bytes()).await;
        eventually(LONG, "its statement", async || {
            let waiting: i64 = sql.query_one(waiting, &[]).await.unwrap().get(0);
            (waiting == number).then_some(())
        })
        .await;
        drop(connection);
    }
    let third = api.output(&ids[0], b"the third");
    // That a caller is gone is not known at once.
    eventually(LONG, "the end of both requests", async || {
        let lines = api.process.lines();
        let hung_up = lines.iter().filter(|line| line.text.contains("\"http.status\":499"));
        (hung_up.count() == 2).then_some(())
    })
    .await;
    assert_eq!(api.send(&third).await.code(), "overloaded");
    lock.rollback().await.unwrap();
    eventually(LONG, "a free place", async || (api.send(&third).await.status == 201).then_some(()))
        .await;
    let kept = "SELECT count(*) FROM site_coordination.private_output";
    assert_eq!(sql.query_one(kept, &[]).await.unwrap().get::<_, i64>(0), 3);
}
