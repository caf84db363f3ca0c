//! `site-admin commands enqueue --lines`: many commands, in their order.

use std::fs;

use crate::support::Stream;

fn line(key: &str) -> String {
    format!("{{\"key\":\"{key}\",\"kind\":\"test\",\"body\":{{\"for\":\"{key}\"}}}}\n")
}

fn lines(count: usize) -> String {
    (1..=count).map(|n| line(&format!("k{n}"))).collect()
}

impl Stream {
    fn enqueue_lines(&self, input: &str) -> crate::support::Done {
        self.commands("enqueue", &["--lines", "-"]).input(input.as_bytes()).run()
    }
}

/// The sequences and states that were printed.
fn printed(out: &str) -> Vec<(usize, &str)> {
    out.lines()
        .map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            (words[0].parse().unwrap(), words[2])
        })
        .collect()
}

#[tokio::test]
async fn more_lines_than_one_statement_takes_are_enqueued_in_their_order() {
    let stream = Stream::create().await;
    let out = stream.enqueue_lines(&lines(600)).ok();
    let all: Vec<_> = (1..=600).map(|seq| (seq, "new")).collect();
    assert_eq!(printed(&out), all);
    let sql = stream.sql().await;
    let keys = "SELECT producer_key FROM site_coordination.command ORDER BY seq";
    let keys: Vec<String> =
        sql.query(keys, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(keys, (1..=600).map(|n| format!("k{n}")).collect::<Vec<_>>());
    let again = stream.enqueue_lines(&lines(600)).ok();
    assert_eq!(again, out.replace("new", "known"));
    assert_eq!(stream.count().await, 600);
}

#[tokio::test]
async fn known_lines_among_new_ones_keep_their_places() {
    let stream = Stream::create().await;
    stream.enqueue_lines(&line("b")).ok();
    let out = stream.enqueue_lines(&[line("a"), line("b"), line("a"), line("c")].concat()).ok();
    let states = printed(&out);
    assert_eq!((states[1], states[3]), ((1, "known"), (3, "new")), "{out}");
    assert_eq!((states[0].0, states[2].0), (2, 2), "a key that is there twice is one command");
    assert_eq!(stream.count().await, 3);
}

#[tokio::test]
async fn lines_whose_bodies_are_together_above_a_mebibyte_are_enqueued() {
    let stream = Stream::create().await;
    let body = "x".repeat(600 * 1024);
    let lines: String = (1..=4)
        .map(|n| format!("{{\"key\":\"k{n}\",\"kind\":\"test\",\"body\":\"{body}\"}}\n"))
        .collect();
    assert_eq!(printed(&stream.enqueue_lines(&lines).ok()).len(), 4);
}

#[tokio::test]
async fn a_wrong_line_is_named_and_none_of_its_batch_is_enqueued() {
    let stream = Stream::create().await;
    for (wrong, said) in [
        ("", "line 3"),
        ("not json", "line 3"),
        ("[]", "line 3"),
        (r#"["k","a",null,null,1]"#, "line 3: must be a JSON object"),
        (r#"{"kind":"a","body":1}"#, "missing field `key`"),
        (r#"{"key":"k","kind":"a"}"#, "missing field `body`"),
        (r#"{"key":"k","kind":"A","body":1}"#, "a kind is"),
        (r#"{"key":"","kind":"a","body":1}"#, "a producer's key is"),
        (r#"{"key":"k","kind":"a","runId":"a b","body":1}"#, "a Run's id is"),
        (r#"{"key":"k","kind":"a","body":1,"more":1}"#, "unknown field `more`"),
        (r#"{"key":"k","a body":1}"#, "line 3: unknown field, at column"),
        (r#"{"key":"k","a`b":1}"#, "line 3: unknown field, at column"),
        (r#"{"key":"k","key":"k","kind":"a","body":1}"#, "duplicate field `key`"),
        (r#"{"key":"k","kind":"a","body":1} {}"#, "line 3"),
    ] {
        let input = [&lines(2), wrong, "\n", &line("last")].concat();
        let done = stream.enqueue_lines(&input);
        done.refused(65, "-, line 3: ");
        assert!(done.err.contains(said), "{said}: {done:?}");
        assert_eq!(stream.count().await, 0, "{wrong}");
    }
}

#[tokio::test]
async fn what_was_enqueued_before_a_wrong_line_is_told_and_known_when_it_is_corrected() {
    let stream = Stream::create().await;
    let done = stream.enqueue_lines(&[&lines(300), "wrong\n"].concat());
    assert_eq!(done.code, 65, "{done:?}");
    assert!(done.err.contains("-, line 301: "), "{}", done.err);
    assert_eq!(printed(&done.out).len(), 256);
    assert_eq!(stream.count().await, 256);
    let states = stream.enqueue_lines(&lines(301)).ok();
    let known = printed(&states).iter().filter(|(_, state)| *state == "known").count();
    assert_eq!((known, stream.count().await), (256, 301));
}

#[tokio::test]
async fn a_key_that_stands_for_another_command_stops_its_batch() {
    let stream = Stream::create().await;
    stream.enqueue("k2", b"\"another\"").ok();
    let said = "the key k2 stands for another command";
    stream.enqueue_lines(&lines(3)).refused(65, said);
    let twice = [line("a"), line("a").replace("for", "against")].concat();
    stream.enqueue_lines(&twice).refused(65, "the key a stands for another command");
    assert_eq!(stream.count().await, 1);
}

#[tokio::test]
async fn a_message_about_a_line_does_not_repeat_its_body() {
    let stream = Stream::create().await;
    for wrong in [
        r#""the-secret""#,
        r#"["the-secret"]"#,
        r#"{"key":"k","kind":"a","body":"the-secret"#,
        r#"{"key":"k","kind":"A","body":"the-secret"}"#,
        r#"{"key":"k","kind":["the-secret"],"body":"the-secret"}"#,
    ] {
        let done = stream.enqueue_lines(wrong);
        done.refused(65, "-, line 1: ");
        assert!(!done.err.contains("the-secret"), "{done:?}");
    }
}

#[tokio::test]
async fn lines_may_come_from_a_file_and_none_at_all_are_no_mistake() {
    let stream = Stream::create().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    fs::write(&file, lines(2)).unwrap();
    let file = file.display().to_string();
    let from_file = |file: &str| stream.commands("enqueue", &["--lines", file]).run();
    assert_eq!(printed(&from_file(&file).ok()), [(1, "new"), (2, "new")]);
    from_file("/no/such/file").refused(66, "/no/such/file");
    assert_eq!(stream.enqueue_lines("").ok(), "");
    // The last line needs no end.
    assert_eq!(printed(&stream.enqueue_lines(line("k3").trim_end()).ok()), [(3, "new")]);
}
