//! The end of the process: what was begun is finished, and nothing holds it up.

use rustix::process::Signal;
use serde_json::json;
use test_support::{eventually, process::Exit};
use tokio::net::TcpStream;

use crate::support::{Api, Connection, LONG, Place};

/// Half of the process's grace period: an orderly end takes far less.
const SOON: std::time::Duration = std::time::Duration::from_secs(10);

async fn terminate(api: &Api) {
    api.process.signal(Signal::TERM);
    api.process
        .wait_for_line("that it drains", LONG, |line| line.contains("\"service.draining\""))
        .await
        .unwrap();
}

/// A request whose body does not come to its end.
async fn unfinished(api: &Api, command_id: &str) -> Connection {
    let mut connection = api.wire.open().await;
    let request = api.result(command_id, b"{\"outcome\":\"failed\"}");
    let bytes = request.header("expect", "100-continue").bytes();
    connection.write(&bytes[..bytes.len() - 1]).await;
    // The server asks for the body when it reads it.
    connection.interim().await;
    connection
}

#[tokio::test]
async fn the_end_releases_a_parked_poll_with_an_empty_page() {
    for signal in [Signal::TERM, Signal::INT] {
        let (api, _) = Api::with_commands(0).await;
        let poll = api.parked(api.poll("after=0&wait=25")).await;
        api.process.signal(signal);
        let page = poll.await.unwrap();
        assert_eq!((page.status, &page.json()["commands"]), (200, &json!([])));
        assert!(page.json().get("superseded").is_none(), "nobody took its place");
        assert_eq!(api.process.wait_exit(SOON).await.unwrap(), Exit::Code(0));
    }
}

#[tokio::test]
async fn a_request_that_is_under_way_is_finished() {
    let (api, ids) = Api::with_commands(1).await;
    let mut connection = unfinished(&api, &ids[0]).await;
    terminate(&api).await;
    connection.write(b"}").await;
    let answer = connection.answer().await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(api.process.wait_exit(SOON).await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn the_hints_of_the_last_results_are_sent_before_the_end() {
    let place = Place::prepare().await;
    let ids = place.enqueue(&["{}", "{}"]);
    let hints = place.database.hint_log("site_coordination_api").await;
    let api = place.start().await;
    let result = |id: &str| api.result(id, b"{\"outcome\":\"failed\"}");
    hints.hold().await;
    assert_eq!(api.send(&result(&ids[0])).await.status, 201);
    hints.held().await;
    assert_eq!(api.send(&result(&ids[1])).await.status, 201);
    terminate(&api).await;
    // Nothing else is left to do.
    let early = api.process.wait_exit(std::time::Duration::from_secs(1)).await;
    assert!(early.is_err(), "it ended before a hint was sent");
    hints.release().await;
    assert_eq!(api.process.wait_exit(SOON).await.unwrap(), Exit::Code(0));
    assert_eq!(hints.transactions().await, [["slurm done"], ["slurm done"]]);
}

#[tokio::test]
async fn hints_that_can_not_be_sent_hold_the_end_up_for_some_seconds_only() {
    let place = Place::prepare().await;
    let ids = place.enqueue(&["{}"]);
    let hints = place.database.hint_log("site_coordination_api").await;
    let api = place.start().await;
    hints.hold().await;
    let result = api.result(&ids[0], b"{\"outcome\":\"failed\"}");
    assert_eq!(api.send(&result).await.status, 201);
    hints.held().await;
    terminate(&api).await;
    assert_eq!(api.process.wait_exit(SOON).await.unwrap(), Exit::Code(0));
    let lost = |line: &str| line.contains("\"commands.hint_lost\"");
    api.process.wait_for_line("that a hint is lost", LONG, lost).await.unwrap();
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let (api, ids) = Api::with_commands(1).await;
    let mut connection = unfinished(&api, &ids[0]).await;
    terminate(&api).await;
    assert_eq!(api.process.exit(), None, "the request holds it up");
    api.process.signal(Signal::TERM);
    assert_eq!(api.process.wait_exit(SOON).await.unwrap(), Exit::Code(130));
    assert!(connection.answer().await.is_none());
}

#[tokio::test]
async fn nobody_is_let_in_any_more_while_a_request_is_finished() {
    let (api, ids) = Api::with_commands(1).await;
    let mut connection = unfinished(&api, &ids[0]).await;
    terminate(&api).await;
    // What a probe sees of it.
    eventually(LONG, "the closed port", async || {
        TcpStream::connect(api.wire.address()).await.err()
    })
    .await;
    connection.write(b"}").await;
    assert_eq!(connection.answer().await.unwrap().status, 201);
    assert_eq!(api.process.wait_exit(SOON).await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn open_connections_without_a_request_do_not_hold_up_the_end() {
    let (api, _) = Api::with_commands(0).await;
    let silent = api.wire.open().await;
    let mut used = api.wire.open().await;
    used.write(&api.poll("after=0").without("connection").bytes()).await;
    assert_eq!(used.answer().await.unwrap().status, 200);
    api.process.signal(Signal::TERM);
    assert_eq!(api.process.wait_exit(SOON).await.unwrap(), Exit::Code(0));
    drop((silent, used));
}

#[tokio::test]
async fn a_connection_without_a_handshake_does_not_hold_up_the_end() {
    let (api, _) = Api::with_commands(0).await;
    // Connected below TLS, and silent from then on.
    let silent = TcpStream::connect(api.wire.address()).await.unwrap();
    api.process.signal(Signal::TERM);
    assert_eq!(api.process.wait_exit(SOON).await.unwrap(), Exit::Code(0));
    drop(silent);
}
