//! Stopping: what a signal asks for.

use std::{io, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::exit::Exit;

/// How long the second signal waits for the handler's group to be killed before it ends the
/// process regardless.
const HURRY: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Nothing,
    Stop,
    StopNow,
}

/// Tells everybody who waits that the agent should stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<Asked>);

/// The side that asks.
pub(crate) struct Stopper(watch::Sender<Asked>);

impl Stop {
    /// A pair of both sides; nothing is asked for yet.
    pub(crate) fn new() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(Asked::Nothing);
        (Stopper(sender), Self(receiver))
    }

    /// Follows SIGTERM and SIGINT: the first asks to stop, the second ends the process at once,
    /// also where something hangs.
    pub(crate) fn on_signals() -> io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (stopper, stop) = Self::new();
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            };
            next().await;
            tracing::info!("agent.stopping");
            stopper.stop();
            next().await;
            tracing::warn!("agent.stopping_now");
            stopper.stop_now();
            tokio::time::sleep(HURRY).await;
            std::process::exit(Exit::Hurried.code().into());
        });
        Ok(stop)
    }

    /// Returns once stopping is asked for.
    pub(crate) async fn asked(&mut self) {
        self.reached(Asked::Stop).await;
    }

    /// Returns once stopping without tidying up is asked for.
    pub(crate) async fn asked_now(&mut self) {
        self.reached(Asked::StopNow).await;
    }

    /// Returns some time after stopping is asked for, or once it is to be without tidying up.
    pub(crate) async fn asked_and_then(&mut self, grace: Duration) {
        self.asked().await;
        tokio::select! {
            () = self.asked_now() => {}
            () = tokio::time::sleep(grace) => {}
        }
    }

    /// Whether stopping is asked for within some time.
    pub(crate) async fn asked_within(&mut self, time: Duration) -> bool {
        !self.sleep(time).await
    }

    /// Whether stopping is asked for.
    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow() >= Asked::Stop
    }

    /// Whether stopping without tidying up is asked for.
    pub(crate) fn is_asked_now(&self) -> bool {
        *self.0.borrow() >= Asked::StopNow
    }

    /// Waits, unless stopping is asked for first: then `false`.
    pub(crate) async fn sleep(&mut self, time: Duration) -> bool {
        tokio::select! {
            () = self.asked() => false,
            () = tokio::time::sleep(time) => true,
        }
    }

    async fn reached(&mut self, asked: Asked) {
        if self.0.wait_for(|now| *now >= asked).await.is_err() {
            // Nobody is left to ask.
            std::future::pending::<()>().await;
        }
    }
}

impl Stopper {
    /// Asks to stop and to tidy up.
    pub(crate) fn stop(&self) {
        self.0.send_replace(Asked::Stop);
    }

    /// Asks to stop at once.
    pub(crate) fn stop_now(&self) {
        self.0.send_replace(Asked::StopNow);
    }
}
