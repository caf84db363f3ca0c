//! Enqueueing: once for each key, all or nothing, the exact body.

use chrono::{DateTime, Utc};
use database::DatabaseError;
use site_coordination::{CommandId, EnqueueError, NewCommand, Producer};

use crate::support::{
    Fixture, SITE, after, at_once, command, command_with, commands_named, count, poll,
    prove_stream, seq, slurm, store, stream,
};
use site_coordination::Environment;

#[tokio::test]
async fn a_command_is_enqueued_read_and_answered() {
    let fixture = Fixture::create().await;
    let (producer, runtime) = (fixture.producer(2), fixture.runtime());
    let enqueued = producer.enqueue(&slurm(), command("a")).await.unwrap();
    assert!(enqueued.new);
    assert_eq!(enqueued.seq, seq(1));

    let page = poll(&runtime, after(0)).await.unwrap();
    assert_eq!(page.commands.len(), 1);
    assert_eq!(page.commands[0].id, enqueued.id);
    assert_eq!(page.commands[0].created_at, enqueued.created_at);

    let (receipt, _) = store(&runtime, &enqueued.id, r#"{"jobId": 7}"#).await.unwrap();
    let shown = producer.show(&slurm(), &enqueued.id).await.unwrap().unwrap();
    let result = shown.result.unwrap();
    assert_eq!(result.digest, receipt.digest);
    assert_eq!(result.body.unwrap().as_str(), r#"{"jobId": 7}"#);
    let listed = producer.list(&slurm(), seq(0), 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].key, "a");
    assert_eq!(listed[0].result.as_ref().unwrap().received_at, receipt.received_at);
}

#[tokio::test]
async fn the_same_key_with_the_same_command_gets_the_first_place_again() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(2);
    let first = producer.enqueue(&slurm(), command("a")).await.unwrap();
    producer.enqueue(&slurm(), command("b")).await.unwrap();
    let again = producer.enqueue(&slurm(), command("a")).await.unwrap();
    assert!(!again.new);
    assert_eq!((again.seq, again.id, again.created_at), (first.seq, first.id, first.created_at));
    assert_eq!(prove_stream(&fixture.sql().await, &slurm()).await, ["a", "b"]);
}

#[tokio::test]
async fn the_same_key_with_another_command_is_refused_and_stores_nothing() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(2);
    producer.enqueue(&slurm(), command("a")).await.unwrap();
    let other_body = command_with("a", r#"{"for":"a"}"#);
    let other_kind = NewCommand {
        kind: site_coordination::CommandKind::parse("job.cancel").unwrap(),
        ..command("a")
    };
    let no_run = NewCommand { run_id: None, ..command("a") };
    let dated = NewCommand { not_after: Some(DateTime::UNIX_EPOCH), ..command("a") };
    for other in [other_body, other_kind, no_run, dated] {
        let one = producer.enqueue(&slurm(), other.clone()).await.unwrap_err();
        let many = producer.enqueue_many(&slurm(), vec![other]).await.unwrap_err();
        for refusal in [one, many] {
            assert!(
                matches!(&refusal, EnqueueError::KeyConflict { key } if key.as_str() == "a"),
                "{refusal:?}"
            );
        }
    }
    assert_eq!(prove_stream(&fixture.sql().await, &slurm()).await, ["a"]);
}

#[tokio::test]
async fn a_key_names_one_command_a_stream() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(2);
    let streams = [slurm(), stream(SITE, Environment::K8s), stream("north-2", Environment::Slurm)];
    let mut ids = std::collections::HashSet::new();
    for stream in &streams {
        let enqueued = producer.enqueue(stream, command("a")).await.unwrap();
        assert!(enqueued.new);
        assert_eq!(enqueued.seq, seq(1));
        ids.insert(enqueued.id);
    }
    assert_eq!(ids.len(), 3);
    let sql = fixture.sql().await;
    for stream in &streams {
        assert_eq!(prove_stream(&sql, stream).await, ["a"]);
    }
}

#[tokio::test]
async fn a_body_comes_out_as_the_text_that_went_in() {
    let fixture = Fixture::create().await;
    let (producer, runtime) = (fixture.producer(1), fixture.runtime());
    let mib = format!("\"{}\"", "x".repeat(1024 * 1024 - 2));
    let bodies = [
        "{ \"b\" :1,\n\t\"a\":  2 }",
        r#"{"a":1,"a":2,"a":1}"#,
        r#"{"\u0061":"\u00e9\u0000\ud83d\ude00","é":"😀"}"#,
        "123456789012345678901234567890.000000000000000000000000000010",
        "[1e400, -0, -0.0, 1E+2, 10000000000000000000000000]",
        "null",
        &mib,
    ];
    for (number, body) in bodies.iter().enumerate() {
        producer.enqueue(&slurm(), command_with(&format!("one{number}"), body)).await.unwrap();
    }
    let many = bodies.iter().enumerate();
    let many = many.map(|(number, body)| command_with(&format!("many{number}"), body)).collect();
    producer.enqueue_many(&slurm(), many).await.unwrap();

    let page = poll(&runtime, after(0)).await.unwrap();
    let read: Vec<&str> = page.commands.iter().map(|command| command.body.as_str()).collect();
    assert_eq!(read.len(), 2 * bodies.len());
    // Not assert_eq!: it would print the large one.
    assert!(read == [bodies, bodies].concat());

    for (command, body) in page.commands.iter().zip(bodies) {
        store(&runtime, &command.id, body).await.unwrap();
        let shown = producer.show(&slurm(), &command.id).await.unwrap().unwrap();
        assert!(shown.body.unwrap().as_str() == body);
        assert!(shown.result.unwrap().body.unwrap().as_str() == body);
    }
    prove_stream(&fixture.sql().await, &slurm()).await;
}

#[tokio::test]
async fn a_list_keeps_its_order_and_answers_in_it() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1);
    let keys = ["m", "z", "a", "q", "b"];
    let list = keys.iter().map(|key| command(key)).collect();
    let answers = producer.enqueue_many(&slurm(), list).await.unwrap();
    for (number, (answer, key)) in answers.iter().zip(keys).enumerate() {
        assert!(answer.new);
        assert_eq!(answer.seq.to_u64(), number as u64 + 1);
        assert_eq!(answer.id, CommandId::derive(&slurm(), &command(key).key));
    }
    assert_eq!(prove_stream(&fixture.sql().await, &slurm()).await, keys);
}

#[tokio::test]
async fn a_key_that_stands_in_a_list_twice_is_one_command() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1);
    let list = ["a", "b", "a", "c", "b"].map(command).to_vec();
    let answers = producer.enqueue_many(&slurm(), list).await.unwrap();
    let places: Vec<u64> = answers.iter().map(|answer| answer.seq.to_u64()).collect();
    assert_eq!(places, [1, 2, 1, 3, 2]);

    let list = vec![command("d"), command("e"), command_with("d", "1")];
    let refusal = producer.enqueue_many(&slurm(), list).await.unwrap_err();
    assert!(matches!(&refusal, EnqueueError::KeyConflict { key } if key.as_str() == "d"));
    assert_eq!(prove_stream(&fixture.sql().await, &slurm()).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_list_that_overlaps_earlier_commands_adds_only_what_is_new() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1);
    producer.enqueue_many(&slurm(), ["b", "d"].map(command).to_vec()).await.unwrap();
    let list = ["a", "b", "c", "d", "e"].map(command).to_vec();
    let answers = producer.enqueue_many(&slurm(), list.clone()).await.unwrap();
    let of = |answers: &[site_coordination::Enqueued]| -> Vec<(u64, bool)> {
        answers.iter().map(|answer| (answer.seq.to_u64(), answer.new)).collect()
    };
    assert_eq!(of(&answers), [(3, true), (1, false), (4, true), (2, false), (5, true)]);
    let again = producer.enqueue_many(&slurm(), list).await.unwrap();
    assert_eq!(of(&again), [(3, false), (1, false), (4, false), (2, false), (5, false)]);
    assert_eq!(prove_stream(&fixture.sql().await, &slurm()).await, ["b", "d", "a", "c", "e"]);
}

#[tokio::test]
async fn a_conflict_in_the_middle_of_a_list_stores_nothing() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1);
    producer.enqueue(&slurm(), command("b")).await.unwrap();
    let list = vec![command("a"), command_with("b", "1"), command("c")];
    let refusal = producer.enqueue_many(&slurm(), list).await.unwrap_err();
    assert!(matches!(&refusal, EnqueueError::KeyConflict { key } if key.as_str() == "b"));
    assert_eq!(prove_stream(&fixture.sql().await, &slurm()).await, ["b"]);
    producer.enqueue(&slurm(), command("d")).await.unwrap();
    assert_eq!(prove_stream(&fixture.sql().await, &slurm()).await, ["b", "d"]);
}

#[tokio::test]
async fn a_list_has_a_length_limit_and_may_be_empty() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1);
    let most = Producer::MOST_AT_ONCE;
    let refusal = producer.enqueue_many(&slurm(), commands_named("k", most + 1)).await.unwrap_err();
    assert!(matches!(refusal, EnqueueError::TooMany { limit: 256 }));
    assert!(producer.enqueue_many(&slurm(), Vec::new()).await.unwrap().is_empty());
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT count(*) FROM site_coordination.stream_head").await, 0);
    producer.enqueue_many(&slurm(), commands_named("k", most)).await.unwrap();
    assert_eq!(prove_stream(&sql, &slurm()).await.len(), most);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_absent_stream_is_made_once_by_many_at_once() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(32);
    let answers = at_once(32, |caller| {
        let producer = producer.clone();
        async move {
            if caller % 2 == 0 {
                producer.enqueue(&slurm(), command(&format!("k{caller}"))).await.map(|_| ())
            } else {
                let commands = commands_named(&format!("k{caller}-"), 3);
                producer.enqueue_many(&slurm(), commands).await.map(|_| ())
            }
        }
    })
    .await;
    for answer in answers {
        answer.unwrap();
    }
    assert_eq!(prove_stream(&fixture.sql().await, &slurm()).await.len(), 16 + 16 * 3);
}

#[tokio::test]
async fn the_debug_form_of_what_is_read_leaves_bodies_out() {
    let fixture = Fixture::create().await;
    let (producer, runtime) = (fixture.producer(2), fixture.runtime());
    let body = r#"{"token":"private"}"#;
    let enqueued = producer.enqueue(&slurm(), command_with("a", body)).await.unwrap();
    store(&runtime, &enqueued.id, body).await.unwrap();
    let page = format!("{:?}", poll(&runtime, after(0)).await.unwrap());
    let shown = producer.show(&slurm(), &enqueued.id).await.unwrap().unwrap();
    let shown = format!("{shown:?}");
    for (told, bodies) in [(page, 1), (shown, 2)] {
        assert_eq!(told.matches("JsonText(19 bytes)").count(), bodies, "{told}");
        assert!(!told.contains("private"), "{told}");
    }
}

#[tokio::test]
async fn not_after_is_kept_to_the_microsecond_and_is_part_of_the_command() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1);
    let dated = |key: &str, text: &str| NewCommand {
        not_after: Some(text.parse::<DateTime<Utc>>().unwrap()),
        ..command(key)
    };
    let moments = [
        ("a", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
        ("b", "2026-11-29T22:00:00.123456999+01:00", "2026-11-29T21:00:00.123456Z"),
        // PostgreSQL has no leap second.
        ("c", "2016-12-31T23:59:60.5Z", "2017-01-01T00:00:00.500000Z"),
        ("d", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    ];
    for (key, given, _) in &moments[..2] {
        producer.enqueue(&slurm(), dated(key, given)).await.unwrap();
    }
    let list = moments[2..].iter().map(|(key, given, _)| dated(key, given)).collect();
    producer.enqueue_many(&slurm(), list).await.unwrap();
    for (key, given, kept) in moments {
        for text in [given, kept] {
            assert!(!producer.enqueue(&slurm(), dated(key, text)).await.unwrap().new, "{text}");
        }
        let other = dated(key, "2026-01-01T00:00:00Z");
        let refusal = producer.enqueue(&slurm(), other).await.unwrap_err();
        assert!(matches!(refusal, EnqueueError::KeyConflict { .. }), "{refusal:?}");
    }
    let sql = fixture.sql().await;
    assert_eq!(prove_stream(&sql, &slurm()).await, ["a", "b", "c", "d"]);
    let kept = "SELECT count(*) FROM site_coordination.command
                 WHERE not_after IN ('1970-01-01Z', '2026-11-29 21:00:00.123456Z',
                                     '2017-01-01 00:00:00.5Z', '9999-12-31 23:59:59.999999Z')";
    assert_eq!(count(&sql, kept).await, 4);

    for outside in ["1969-12-31T23:59:59Z", "9999-12-31T23:59:60Z", "+10000-01-01T00:00:00Z"] {
        let one = producer.enqueue(&slurm(), dated("e", outside)).await.unwrap_err();
        let list = vec![command("f"), dated("e", outside)];
        let many = producer.enqueue_many(&slurm(), list).await.unwrap_err();
        for refusal in [one, many] {
            assert!(
                matches!(&refusal, EnqueueError::NotAfterOutOfRange { key } if key.as_str() == "e"),
                "{outside}: {refusal:?}"
            );
        }
    }
    assert_eq!(prove_stream(&sql, &slurm()).await.len(), 4);
}

/// A partly restored database: its head stands before commands that are there.
#[tokio::test]
async fn a_broken_head_is_not_taken_for_other_producers() {
    let fixture = Fixture::create().await;
    fixture.filled(2).await;
    let sql = fixture.sql().await;
    sql.batch_execute("UPDATE site_coordination.stream_head SET last_seq = 0").await.unwrap();
    let producer = fixture.producer(1);
    let one = producer.enqueue(&slurm(), command("new")).await.unwrap_err();
    let many = producer.enqueue_many(&slurm(), commands_named("new", 2)).await.unwrap_err();
    for refusal in [one, many] {
        let EnqueueError::Database(DatabaseError::UniqueViolation { constraint }) = refusal else {
            panic!("{refusal:?}");
        };
        assert_eq!(constraint, "command_pkey");
    }
}
