//! Where what is printed can't be written, or nobody reads it any more.

use crate::support::{
    ADMINISTRATOR, API, Admin, KEEPER, OWNER, PRODUCER, Stream, admin, full, unread,
};

/// Every command that prints and changes nothing, or nothing more when it is run again.
fn commands(stream: &Stream) -> Vec<Admin> {
    vec![
        admin(&["--help"]),
        admin(&["--version"]),
        admin(&["credentials", "issue", "--help"]),
        admin(&["database", "roles"]),
        admin(&["database", "provision", "--directory", "/nowhere"])
            .with(ADMINISTRATOR, &stream.database.superuser_url()),
        admin(&["database", "migrate"])
            .with(OWNER, &stream.database.url("site_coordination_owner")),
        admin(&["database", "check"])
            .with(API, &stream.database.url("site_coordination_api"))
            .with(PRODUCER, &stream.url()),
        admin(&["completions", "bash"]),
        admin(&["status"]).with(PRODUCER, &stream.url()),
        admin(&["commands", "prune"])
            .with(KEEPER, &stream.database.url("site_coordination_keeper")),
        stream.commands("cancel", &["--key", "k1"]),
        stream.commands("list", &["--json"]),
        stream.commands("list", &[]),
        stream.commands("show", &["--key", "k1"]),
        stream.commands("enqueue", &["--key", "k1", "--kind", "test", "--body", "-"]).input(b"{}"),
        stream
            .commands("enqueue", &["--lines", "-"])
            .input(br#"{"key": "k1", "kind": "test", "body": {}}"#),
    ]
}

#[tokio::test]
async fn an_output_that_can_not_be_written_is_said_and_exits_74() {
    let stream = Stream::create().await;
    stream.enqueue("k1", b"{}").ok();
    for command in commands(&stream) {
        let done = command.output(full()).run();
        done.refused(74, "site-admin: can't write to standard output: No space left on device");
    }
}

#[tokio::test]
async fn a_reader_that_has_left_changes_nothing_of_the_work_and_its_exit_code() {
    let stream = Stream::create().await;
    stream.enqueue("k1", b"{}").ok();
    for command in commands(&stream) {
        let done = command.output(unread()).run();
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    }
    let lines: String = (0..1000)
        .map(|n| format!("{{\"key\": \"n{n}\", \"kind\": \"test\", \"body\": {n}}}\n"))
        .collect();
    let enqueue = stream.commands("enqueue", &["--lines", "-"]).input(lines.as_bytes());
    assert_eq!(enqueue.output(unread()).run().code, 0);
    assert_eq!(stream.count().await, 1001);
    let absent = stream.commands("show", &["--key", "absent"]).output(unread()).run();
    absent.refused(66, "the stream has no such command");
}

#[test]
fn a_failure_that_can_not_be_said_keeps_its_exit_code() {
    for arguments in [&["--nothing"][..], &["database", "migrate"]] {
        assert_eq!(admin(arguments).errors(full()).run().code, 64);
    }
}
