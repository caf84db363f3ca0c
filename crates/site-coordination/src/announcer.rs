//! Sends hints after commits, many of them as one.

use std::{collections::HashSet, time::Duration};

use tokio::sync::{mpsc, oneshot};

use crate::{Stream, store::Store, wakeups::News};

/// Tells the listeners of a stream's Site that there is something new.
///
/// A hint is sent in a transaction of its own after the commit of what it tells: inside it the
/// commits of all would wait for each other. What gathers while another is on its way goes together,
/// and equal hints for one stream become one.
#[derive(Clone)]
pub(crate) struct Announcer {
    messages: mpsc::UnboundedSender<Message>,
}

enum Message {
    Hint(Stream, News),
    Flush(oneshot::Sender<()>),
}

impl Announcer {
    /// Starts the task that sends, and rests for `pause` after each round, so that what is told very
    /// often is told together. It ends with the last clone of the announcer.
    pub(crate) fn start(store: Store, pause: Duration) -> Self {
        let (messages, inbox) = mpsc::unbounded_channel();
        tokio::spawn(send(store, inbox, pause));
        Self { messages }
    }

    /// Notes that `stream` has something new, and returns at once.
    pub(crate) fn announce(&self, stream: &Stream, news: News) {
        // The task lives as long as this sender, so the message always has a taker.
        let _ = self.messages.send(Message::Hint(stream.clone(), news));
    }

    /// Returns when every hint so far has been sent or has failed.
    pub(crate) async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        let _ = self.messages.send(Message::Flush(done));
        let _ = sent.await;
    }
}

async fn send(store: Store, mut inbox: mpsc::UnboundedReceiver<Message>, pause: Duration) {
    let mut messages = Vec::new();
    while inbox.recv_many(&mut messages, 1024).await > 0 {
        let mut hints = HashSet::new();
        let mut flushes = Vec::new();
        for message in messages.drain(..) {
            match message {
                Message::Hint(stream, news) => {
                    hints.insert((stream, news));
                }
                Message::Flush(done) => flushes.push(done),
            }
        }
        if !hints.is_empty()
            && let Err(error) = store.announce(hints).await
        {
            // A lost hint costs the listener a tick.
            tracing::warn!(error = %error, "commands.hint_lost");
        }
        for done in flushes {
            let _ = done.send(());
        }
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}
