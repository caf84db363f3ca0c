//! Ctrl-C and SIGTERM: asked for once, seen everywhere.

use std::io;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Whether the user wants us to stop.
pub(crate) struct Stop(watch::Receiver<bool>);

/// The user stopped us.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub(crate) struct Stopped;

impl Stop {
    /// Listens for SIGINT, SIGTERM and SIGHUP from now on.
    pub(crate) fn on_signals() -> io::Result<Self> {
        let (sender, stop) = Self::channel();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            let (mut signal, sender) = (signal(kind)?, sender.clone());
            tokio::spawn(async move {
                while signal.recv().await.is_some() {
                    sender.send_replace(true);
                }
            });
        }
        Ok(stop)
    }

    /// One that is asked for by sending `true`.
    pub(crate) fn channel() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Returns when the user has asked.
    pub(crate) async fn requested(&self) {
        // The senders live in tasks that never end.
        let _ = self.0.clone().wait_for(|stop| *stop).await;
    }

    /// Does `work` unless the user asks; then it is dropped where it stands.
    pub(crate) async fn unless<T>(&self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        tokio::select! {
            biased;
            () = self.requested() => Err(Stopped),
            done = work => Ok(done),
        }
    }
}
