//! Going through a page: batches of results, until each has its receipt.

use std::time::Duration;

use site_client::next_chain_digest;
use site_protocol::CommandPage;

use super::{
    life::{Leaving, Life},
    results::Prepared,
    sender::Cursor,
};
use crate::qualify::commands::history::{Answer, StoredResult};

impl Life {
    /// Answers the commands of a page, and gives the page that the last results brought along.
    pub(super) async fn go_through(
        &mut self,
        page: CommandPage,
    ) -> Result<Option<CommandPage>, Leaving> {
        let has_ended = |seq: u64| page.head.is_none_or(|head| seq < head.seq);
        self.ahead = page.commands.into();
        loop {
            if self.is_stopped() {
                return Err(Leaving::Stopped);
            }
            while let Some(first) = self.ahead.front()
                && (first.voided || has_ended(first.seq))
            {
                let digest = next_chain_digest(&self.cursor.digest, &first.digest);
                self.cursor = Cursor { seq: first.seq, digest };
                self.ahead.pop_front();
            }
            let batch = self.next_batch();
            if batch.is_empty() {
                return Ok(None);
            }
            let time = batch.iter().map(|result| result.time).max().unwrap_or(Duration::ZERO);
            tokio::time::sleep(time).await;
            self.before_its_turn().await;
            self.without_its_output(&batch).await;
            let brought = self.deliver(&batch).await?;
            self.ahead.drain(..batch.len());
            if let Some(last) = batch.last() {
                self.cursor = Cursor { seq: last.seq, digest: last.chain_digest };
            }
            self.stored = batch;
            self.after_the_receipt().await;
            // Where only the other sender was told of all, the page goes on from an earlier place.
            let begins = |page: &CommandPage| page.next_after - page.commands.len() as u64;
            if let Some(page) = brought.filter(|page| begins(page) == self.cursor.seq) {
                return Ok(Some(page));
            }
        }
    }

    /// Results of the next commands. A private output is stored while its command is due, so it
    /// begins a batch.
    fn next_batch(&mut self) -> Vec<Prepared> {
        let most = match self.random.within(0..3) {
            0 => 1,
            1 => self.random.within(1..9),
            _ => 64,
        };
        let most = usize::try_from(most).unwrap_or(1);
        let mut batch = self.prepared(most);
        let private = batch.iter().skip(1).position(|result| result.output.is_some());
        if let Some(before) = private {
            batch.truncate(before + 1);
        }
        batch
    }

    /// The results of the first commands ahead that will have one.
    pub(super) fn prepared(&self, most: usize) -> Vec<Prepared> {
        let mut chain = self.cursor.digest;
        let runs = self.ahead.iter().take(most).take_while(|command| !command.voided);
        runs.map(|command| {
            chain = next_chain_digest(&chain, &command.digest);
            self.senders[0].kept.result(command, chain, self.nonce)
        })
        .collect()
    }

    /// Sends the same results until each has its receipt.
    async fn deliver(&mut self, batch: &[Prepared]) -> Result<Option<CommandPage>, Leaving> {
        let mut with_output = true;
        loop {
            if with_output {
                self.store_output(batch).await?;
            }
            let (answers, brought) = self.send(batch).await;
            let missing = answers.iter().find(|answer| !matches!(answer, Answer::Good(_)));
            with_output = false;
            match missing {
                None => return Ok(brought),
                Some(Answer::Refused(refused)) if refused.code == "output_missing" => {
                    with_output = true;
                }
                Some(Answer::Refused(refused)) => self.leave_for(refused)?,
                Some(Answer::Broken(_)) => return Err(self.recover()),
                Some(Answer::Unknown(_) | Answer::Good(_)) => {}
            }
            self.back_off().await?;
        }
    }

    async fn store_output(&mut self, batch: &[Prepared]) -> Result<(), Leaving> {
        let Some(first) = batch.first() else { return Ok(()) };
        let Some(output) = &first.output else { return Ok(()) };
        loop {
            let sender = &self.senders[0];
            let stored = sender.store_output(&self.writer, &first.command_id, output.clone());
            match stored.await {
                Answer::Good(_) => return Ok(()),
                // Its result is there already, by a try whose answer was lost: that one is sent.
                Answer::Refused(refused) if refused.code == "result_conflict" => return Ok(()),
                Answer::Refused(refused) => self.leave_for(&refused)?,
                Answer::Broken(_) => return Err(self.recover()),
                Answer::Unknown(_) => {}
            }
            self.back_off().await?;
        }
    }

    /// Once, by one sender or by both at the same moment.
    async fn send(
        &mut self,
        results: &[Prepared],
    ) -> (Vec<Answer<StoredResult>>, Option<CommandPage>) {
        let batch = results.len() > 1 || self.random.within(0..2) == 0;
        let next = (self.random.within(0..2) == 0)
            .then(|| u32::try_from(self.random.within(1..65)).unwrap_or(64));
        if self.random.within(0..5) > 0 {
            let sender = self.a_sender();
            return self.senders[sender].send(&self.writer, results, batch, next).await;
        }
        let other_way = if results.len() > 1 { batch } else { self.random.within(0..2) == 0 };
        let [one, other] = &self.senders;
        let ((answers, brought), (others, _)) = tokio::join!(
            one.send(&self.writer, results, batch, next),
            other.send(&self.writer, results, other_way, None),
        );
        let either = |(one, other)| if matches!(one, Answer::Good(_)) { one } else { other };
        (answers.into_iter().zip(others).map(either).collect(), brought)
    }
}
