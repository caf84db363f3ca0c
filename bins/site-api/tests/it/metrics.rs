//! The metrics of the command routes: what was sent and what was stored, neither more nor less.

use crate::support::{Api, FIRST_SESSION, Request, SECOND_SESSION, plain};

/// The series of a counter with their values, in the order of their labels.
async fn series(api: &Api, counter: &str) -> Vec<String> {
    let metrics = plain(api.admin, &Request::new("GET", "/metrics")).await;
    assert_eq!(metrics.status, 200);
    let series = metrics.text().lines().filter_map(|line| line.strip_prefix(counter));
    let mut series: Vec<_> = series.map(str::to_owned).collect();
    series.sort();
    series
}

#[tokio::test]
async fn every_command_that_a_poll_brings_is_counted() {
    let (api, _) = Api::with_commands(3).await;
    for (query, sent) in [("after=0&limit=2", 2), ("after=2", 3), ("after=3", 3), ("after=0", 6)] {
        assert_eq!(api.send(&api.poll(query)).await.status, 200);
        let expected = format!("{{environment=\"slurm\"}} {sent}");
        assert_eq!(series(&api, "commands_sent_total").await, [expected], "{query}");
    }
    // What is refused brings nothing.
    assert_eq!(api.send(&api.poll("after=4")).await.code(), "cursor_ahead");
    let sent = series(&api, "commands_sent_total").await;
    assert_eq!(sent, [r#"{environment="slurm"} 6"#]);
}

#[tokio::test]
async fn a_result_is_counted_when_it_is_stored_and_not_when_it_is_repeated() {
    let (api, ids) = Api::with_commands(3).await;
    let [succeeded, failed] = [r#"{"outcome":"succeeded"}"#, r#"{"outcome":"failed"}"#];
    for (id, body, status) in [
        (&ids[0], succeeded, 201),
        (&ids[0], succeeded, 200),
        (&ids[0], failed, 409),
        (&ids[2], failed, 409),
        (&ids[1], failed, 201),
        (&ids[1], failed, 200),
        (&ids[2], succeeded, 201),
    ] {
        assert_eq!(api.send(&api.result(id, body.as_bytes())).await.status, status);
    }
    let stored = series(&api, "results_stored_total").await;
    let expected = [
        r#"{environment="slurm",outcome="failed"} 1"#,
        r#"{environment="slurm",outcome="succeeded"} 2"#,
    ];
    assert_eq!(stored, expected);
}

#[tokio::test]
async fn sessions_and_outputs_are_counted_when_they_are_new() {
    let (api, ids) = Api::with_commands(1).await;
    for status in [201, 200] {
        assert_eq!(api.send(&api.output(&ids[0], b"bytes")).await.status, status);
    }
    for status in [201, 200] {
        assert_eq!(api.send(&api.session(FIRST_SESSION, 1)).await.status, status);
    }
    assert_eq!(api.send(&api.session(SECOND_SESSION, 1)).await.status, 409);
    for counter in ["sessions_opened_total", "outputs_stored_total"] {
        assert_eq!(series(&api, counter).await, [r#"{environment="slurm"} 1"#], "{counter}");
    }
    // Of a batch what is new, and what comes along.
    let batch = api.batch(&[(&ids[0], r#"{"outcome":"rejected"}"#)]).writer(2, FIRST_SESSION);
    api.place.enqueue(&["{}", "{}"]);
    for _ in 0..2 {
        assert_eq!(api.send(&batch.clone().query("next=1")).await.status, 200);
    }
    let stored = series(&api, "results_stored_total").await;
    assert_eq!(stored, [r#"{environment="slurm",outcome="rejected"} 1"#]);
    let sent = series(&api, "commands_sent_total").await;
    assert_eq!(sent, [r#"{environment="slurm"} 2"#]);
}
