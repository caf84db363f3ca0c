//! What a well-behaved Runtime would not send: each has to be refused, or changes nothing.

use std::time::Duration;

use super::{life::Life, results::Prepared};

impl Life {
    /// A result whose predecessor is missing, alone or behind one that is due.
    pub(super) async fn before_its_turn(&mut self) {
        if self.ahead.len() < 2 || self.random.within(0..8) > 0 {
            return;
        }
        let ahead = self.prepared(8);
        let Some(skipped) = self.random.choose(ahead.get(1..).unwrap_or_default()).cloned() else {
            return;
        };
        let due =
            ahead.first().filter(|first| first.output.is_none() && skipped.seq > first.seq + 1);
        let with_due = due.filter(|_| self.random.within(0..3) == 0).cloned();
        let results: Vec<_> = with_due.into_iter().chain([skipped]).collect();
        let batch = results.len() > 1 || self.random.within(0..2) == 0;
        let sender = self.a_sender();
        self.senders[sender].send(&self.writer, &results, batch, None).await;
    }

    /// A result that names an output which nobody has stored yet.
    pub(super) async fn without_its_output(&mut self, batch: &[Prepared]) {
        let first = batch.first().filter(|first| first.output.is_some());
        if let Some(first) = first
            && self.random.within(0..3) == 0
        {
            let sender = &self.senders[0];
            sender.send(&self.writer, std::slice::from_ref(first), false, None).await;
        }
    }

    /// The same again, and something else.
    pub(super) async fn after_the_receipt(&mut self) {
        if self.random.within(0..8) == 0 {
            self.repeat().await;
        }
        if self.random.within(0..8) == 0
            && let Some(stored) = self.random.choose(&self.stored)
        {
            let other = [stored.contradiction()];
            let batch = self.random.within(0..2) == 0;
            let sender = self.a_sender();
            self.senders[sender].send(&self.writer, &other, batch, None).await;
        }
    }

    /// The old writer does not believe that it was taken over: it goes on for a while, with what it
    /// had ahead and with what it had stored.
    pub(super) async fn go_on_trying(&mut self) {
        for _ in 0..self.random.within(2..8) {
            if self.is_stopped() {
                return;
            }
            let most = usize::try_from(self.random.within(1..9)).unwrap_or(1);
            let ahead = self.prepared(most);
            if !ahead.is_empty() {
                let batch = ahead.len() > 1;
                self.senders[0].send(&self.writer, &ahead, batch, Some(8)).await;
            }
            match self.random.within(0..3) {
                0 => self.repeat().await,
                1 => {
                    self.senders[1].poll(&self.writer, self.cursor, 8, Duration::ZERO).await;
                }
                _ => {}
            }
            tokio::time::sleep(self.random.duration(Duration::from_millis(250))).await;
        }
    }

    async fn repeat(&mut self) {
        if !self.stored.is_empty() {
            let next = (self.random.within(0..2) == 0).then_some(8);
            let sender = self.a_sender();
            self.senders[sender].send(&self.writer, &self.stored, true, next).await;
        }
    }
}
