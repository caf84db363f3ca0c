//! Keeps one connection to the broker, for ever.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;
use tokio::{
    select,
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use crate::{
    CouldNotAsk, Setup,
    health::Pulse,
    line::{Line, OpenError, OpenLine},
};

/// How it stands with the connection.
#[derive(Default)]
pub(crate) struct Standing {
    /// What questions go over; none where there is no connection.
    pub(crate) line: Option<Arc<Line>>,
    /// How many attempts to connect have begun.
    pub(crate) begun: u64,
    /// The last attempt that failed, 0 where none has.
    pub(crate) failed: u64,
    /// Why it did, or why the last line was lost.
    pub(crate) reason: String,
}

/// What makes the connection, and makes it again.
pub(crate) struct Keeper {
    pub(crate) setup: Setup,
    pub(crate) random: SystemRandom,
    pub(crate) clock: fn() -> DateTime<Utc>,
    pub(crate) tell: watch::Sender<Standing>,
    /// A question waits for a connection.
    pub(crate) wanted: Arc<Notify>,
    pub(crate) pulse: Arc<Pulse>,
}

impl Keeper {
    /// Works until nobody can ask any more.
    pub(crate) async fn run(self, mut closed: watch::Receiver<()>) {
        let pace = self.setup.pace;
        let mut pause = pace.first_pause;
        loop {
            let opened = select! {
                opened = self.open() => opened,
                _ = closed.changed() => return,
            };
            match opened {
                Ok(open) => {
                    pause = pace.first_pause;
                    let Some(reason) = self.serve(open, &mut closed).await else { return };
                    tracing::warn!(error = reason, "beto.connection_lost");
                }
                Err(reason) => {
                    // One outage is told once; the alarm says that it lasts.
                    if pause == pace.first_pause {
                        tracing::warn!(error = reason, "beto.not_connected");
                    }
                    self.pulse.disconnected(&reason);
                }
            }
            // So that no number of questions makes a storm of logins.
            sleep(pace.between).await;
            select! {
                () = sleep(pause) => {}
                () = self.wanted.notified() => {}
                _ = closed.changed() => return,
            }
            pause = (pause * 2).min(pace.longest_pause);
        }
    }

    /// One attempt. It has half of a question's budget, so that a question which comes while an
    /// attempt hangs has time for the next.
    async fn open(&self) -> Result<OpenLine, String> {
        self.tell.send_modify(|now| now.begun += 1);
        let within = self.setup.budget / 2;
        let opening = Line::open(&self.setup, within, &self.random, self.clock);
        let reason = match timeout(within, opening).await {
            Ok(Ok(open)) => return Ok(open),
            Ok(Err(error)) => broker::told(&error),
            Err(_) => OpenError::Slow(within).to_string(),
        };
        self.tell.send_modify(|now| {
            now.failed = now.begun;
            now.reason.clone_from(&reason);
        });
        Err(reason)
    }

    /// Lets questions go over a line until it is lost, and says why; none when nobody asks any more.
    async fn serve(&self, open: OpenLine, closed: &mut watch::Receiver<()>) -> Option<String> {
        let OpenLine { line, answers, link } = open;
        self.pulse.connected();
        self.tell.send_modify(|now| now.line = Some(Arc::clone(&line)));
        let reason = select! {
            reason = line.serve(answers) => reason,
            _ = closed.changed() => {
                link.close().await;
                return None;
            }
        };
        // The stream ends here, also where the other side says nothing any more.
        drop(link);
        self.tell.send_modify(|now| {
            now.line = None;
            now.reason.clone_from(&reason);
        });
        line.lose(&CouldNotAsk::Lost(reason.clone()));
        self.pulse.disconnected(&reason);
        Some(reason)
    }
}
