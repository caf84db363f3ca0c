use std::{
    future::pending,
    time::{Duration, Instant},
};

use futures_util::stream;
use service_kit::{
    Ending, Lifecycle, Limits, Shutdown,
    drain::{Signals, process_signals},
};
use tokio::{net::TcpStream, sync::mpsc, time::timeout};

use crate::support::{GENEROUS, Server};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(100);

/// Signals that a test gives.
fn scripted() -> (mpsc::UnboundedSender<()>, Signals) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let signals = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|()| ((), receiver))
    });
    (sender, Box::pin(signals))
}

async fn ending_of(lifecycle: Lifecycle, signals: Signals) -> Ending {
    timeout(GENEROUS, lifecycle.run(signals)).await.expect("the process ends")
}

/// A task that ends when the process drains.
fn orderly(lifecycle: &mut Lifecycle) {
    let shutdown = lifecycle.shutdown();
    lifecycle.spawn("orderly", async move { shutdown.draining().await });
}

#[tokio::test]
async fn a_handle_tells_that_the_process_is_stopping() {
    let (trigger, shutdown) = Shutdown::new();
    assert!(!shutdown.is_draining());
    assert!(timeout(SHORT, shutdown.draining()).await.is_err());
    trigger.drain();
    assert!(shutdown.is_draining());
    timeout(GENEROUS, shutdown.draining()).await.unwrap();
}

#[tokio::test]
async fn a_trigger_that_is_gone_is_taken_for_a_stop() {
    let (trigger, shutdown) = Shutdown::new();
    drop(trigger);
    assert!(shutdown.is_draining());
    timeout(GENEROUS, shutdown.draining()).await.unwrap();
}

#[tokio::test]
async fn a_signal_ends_an_orderly_process_with_code_0() {
    let (signal, signals) = scripted();
    let mut lifecycle = Lifecycle::new(LONG);
    orderly(&mut lifecycle);
    lifecycle.spawn_support("support", pending());
    signal.send(()).unwrap();
    let ending = ending_of(lifecycle, signals).await;
    assert_eq!((ending, ending.exit_code()), (Ending::Clean, 0));
}

#[tokio::test]
async fn a_process_runs_on_without_a_signal() {
    let (_signal, signals) = scripted();
    let mut lifecycle = Lifecycle::new(LONG);
    orderly(&mut lifecycle);
    assert!(timeout(SHORT, lifecycle.run(signals)).await.is_err());
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let (signal, signals) = scripted();
    let mut lifecycle = Lifecycle::new(LONG);
    lifecycle.spawn("stubborn", pending());
    signal.send(()).unwrap();
    signal.send(()).unwrap();
    let ending = ending_of(lifecycle, signals).await;
    assert_eq!((ending, ending.exit_code()), (Ending::Forced, 130));
}

#[tokio::test]
async fn what_does_not_finish_within_the_grace_period_is_cut() {
    let (signal, signals) = scripted();
    let mut lifecycle = Lifecycle::new(SHORT);
    lifecycle.spawn("stubborn", pending());
    signal.send(()).unwrap();
    let began = Instant::now();
    let ending = ending_of(lifecycle, signals).await;
    assert_eq!((ending, ending.exit_code()), (Ending::GraceExceeded, 75));
    assert!(began.elapsed() >= SHORT);
}

#[tokio::test]
async fn a_task_that_panics_stops_the_process_with_a_failing_code() {
    let (_signal, signals) = scripted();
    let mut lifecycle = Lifecycle::new(LONG);
    orderly(&mut lifecycle);
    lifecycle.spawn("broken", async { panic!("on purpose") });
    let ending = ending_of(lifecycle, signals).await;
    assert_eq!((ending, ending.exit_code()), (Ending::TaskFailed("broken"), 70));
}

#[tokio::test]
async fn a_task_that_ends_unasked_stops_the_process_with_a_failing_code() {
    for support in [false, true] {
        let (_signal, signals) = scripted();
        let mut lifecycle = Lifecycle::new(LONG);
        orderly(&mut lifecycle);
        if support {
            lifecycle.spawn_support("short", async {});
        } else {
            lifecycle.spawn("short", async {});
        }
        assert_eq!(ending_of(lifecycle, signals).await, Ending::TaskFailed("short"));
    }
}

#[tokio::test]
async fn a_panic_during_the_drain_is_a_failure() {
    let (signal, signals) = scripted();
    let mut lifecycle = Lifecycle::new(LONG);
    let shutdown = lifecycle.shutdown();
    lifecycle.spawn("broken", async move {
        shutdown.draining().await;
        panic!("on purpose");
    });
    signal.send(()).unwrap();
    assert_eq!(ending_of(lifecycle, signals).await, Ending::TaskFailed("broken"));
}

#[tokio::test]
async fn real_signals_are_seen() {
    let signals = process_signals().unwrap();
    let mut lifecycle = Lifecycle::new(LONG);
    lifecycle.spawn("stubborn", pending());
    let shutdown = lifecycle.shutdown();
    let running = tokio::spawn(lifecycle.run(signals));
    let me = rustix::process::getpid();
    rustix::process::kill_process(me, rustix::process::Signal::TERM).unwrap();
    timeout(GENEROUS, shutdown.draining()).await.unwrap();
    rustix::process::kill_process(me, rustix::process::Signal::INT).unwrap();
    let ending = timeout(GENEROUS, running).await.unwrap().unwrap();
    assert_eq!(ending, Ending::Forced);
}

#[tokio::test]
async fn a_drain_finishes_what_runs_releases_what_is_parked_and_closes_what_is_idle() {
    let server = Server::start(Limits::default()).await;
    let (mut running, mut parked) = (server.connect().await, server.connect().await);
    let mut idle = server.connect().await;
    assert_eq!(idle.get("/hello").await.status, 200);
    running.send("GET /held HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    parked.send("GET /parked HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    server.gate.entered().await;
    server.gate.entered().await;

    server.trigger.drain();
    let released = parked.receive().await;
    assert_eq!((released.status, &released.json()["released"]), (200, &true.into()));
    assert_eq!(released.header("connection"), Some("close"));
    idle.closed().await;
    assert!(TcpStream::connect(server.address).await.is_err());

    server.gate.open();
    assert_eq!(running.receive().await.status, 200);
    running.closed().await;
    parked.closed().await;
    server.ended().await;
}

#[tokio::test]
async fn a_connection_in_its_handshake_does_not_hold_up_the_drain() {
    let server = Server::start(Limits { handshake: LONG, ..Limits::default() }).await;
    let _silent = TcpStream::connect(server.address).await.unwrap();
    // A second connection is served, so that the first one has been accepted.
    assert_eq!(server.connect().await.get("/hello").await.status, 200);
    server.trigger.drain();
    server.ended().await;
}
