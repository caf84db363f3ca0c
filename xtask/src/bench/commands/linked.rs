//! A Runtime in this process, by the client that every Runtime links: pulls commands in order, checks
//! the chain, stores a result for each, and notes all that it is told.

use std::{
    collections::VecDeque,
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use site_client::{
    CallError, Next, PollRequest, ResultToStore, SiteClient, Stored, Writer, next_chain_digest,
};
use site_protocol::{Command, CommandPage, Digest, Receipt};
use tokio::sync::{Semaphore, watch};

use crate::bench::world::{Bench, BenchSite};

/// The most commands of a page.
const PAGE: u32 = 64;
/// How long a poll may wait; an end of the load interrupts it.
const WAIT: Duration = Duration::from_secs(20);
/// The bytes of a result.
const RESULT_BYTES: usize = 200;

/// How a Runtime pulls and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Pages of 64 ahead, each result with a `PUT` of its own.
    Pages,
    /// Each result with a `PUT` that brings the next command.
    Next,
    /// So many results with one `PUT` that brings as many commands.
    Batches(u32),
}

/// A command that was answered: what the Runtime was told of it and of its result.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) seq: u64,
    pub(crate) command_id: String,
    pub(crate) receipt: Receipt,
    pub(crate) stored: Stored,
    /// When the receipt was in hand.
    pub(crate) at: Instant,
}

/// A Runtime of one stream, with the place up to which it has read.
pub(crate) struct LinkedRuntime {
    client: SiteClient,
    after: u64,
    after_digest: Digest,
    /// The chain digest at the last command that was answered.
    answered_digest: Digest,
    ahead: VecDeque<Command>,
}

/// What ends a load for a Runtime.
#[derive(Clone)]
pub(crate) struct Answering {
    /// The last command that there will be, once it is known.
    pub(crate) last: watch::Receiver<Option<u64>>,
    /// The room for commands without a result.
    pub(crate) room: Arc<Semaphore>,
}

impl LinkedRuntime {
    /// One that has read nothing.
    pub(crate) fn new(client: SiteClient) -> Self {
        let zero = Digest::ZERO;
        let ahead = VecDeque::new();
        Self { client, after: 0, after_digest: zero, answered_digest: zero, ahead }
    }

    /// One that has read the stream to its end, as the database holds it.
    pub(crate) async fn at_the_end(
        bench: &Bench,
        site: &BenchSite,
    ) -> Result<Self, Box<dyn Error>> {
        let sql = "SELECT last_seq, last_digest FROM site_coordination.stream_head
                    WHERE site = $1 AND environment = $2";
        let (name, environment) = (site.stream.site.as_str(), site.stream.environment.as_str());
        let head = bench.superuser().await?.query_opt(sql, &[&name, &environment]).await?;
        let new = Self::new(site.client().await?);
        let Some(head) = head else { return Ok(new) };
        let digest: [u8; 32] = head.get::<_, &[u8]>(1).try_into()?;
        let digest = Digest::from_bytes(digest);
        let after = head.get::<_, i64>(0).unsigned_abs();
        Ok(Self { after, after_digest: digest, answered_digest: digest, ..new })
    }

    /// Up to where it has read.
    pub(crate) fn after(&self) -> u64 {
        self.after
    }

    /// Answers commands until the last one of the load.
    pub(crate) async fn answer(
        &mut self,
        pace: Pace,
        mut load: Answering,
    ) -> Result<Vec<Answered>, CallError> {
        let mut answered = Vec::new();
        loop {
            let next = match pace {
                Pace::Pages => None,
                Pace::Next => Some(1),
                Pace::Batches(size) => Some(size),
            };
            if self.ahead.is_empty() && !self.pull(next.unwrap_or(PAGE), &mut load).await? {
                return Ok(answered);
            }
            let before = answered.len();
            match pace {
                Pace::Pages | Pace::Next => answered.push(self.store_one(next).await?),
                Pace::Batches(size) => answered.extend(self.store_many(size).await?),
            }
            load.room.add_permits(answered.len() - before);
        }
    }

    /// Waits for commands; false when the last one was read.
    async fn pull(&mut self, limit: u32, load: &mut Answering) -> Result<bool, CallError> {
        loop {
            let last = *load.last.borrow_and_update();
            if last.is_some_and(|last| self.after >= last) {
                return Ok(false);
            }
            tokio::select! {
                page = self.poll(limit) => {
                    self.read(page?);
                    if !self.ahead.is_empty() {
                        return Ok(true);
                    }
                }
                Ok(()) = load.last.changed() => {}
            }
        }
    }

    /// The page after what was read, as soon as there is a command in it.
    pub(crate) async fn poll(&self, limit: u32) -> Result<CommandPage, CallError> {
        let request = PollRequest {
            writer: Writer::FIRST,
            after: self.after,
            after_digest: Some(self.after_digest),
            cancel_rev: 0,
            limit,
            wait: WAIT,
        };
        self.client.poll(&request).await
    }

    /// Takes a page over.
    pub(crate) fn read(&mut self, page: CommandPage) {
        (self.after, self.after_digest) = (page.next_after, page.next_digest);
        self.ahead.extend(page.commands);
    }

    /// Stores the result of the first command ahead.
    pub(crate) async fn store_one(&mut self, next: Option<u32>) -> Result<Answered, CallError> {
        let command = self.ahead.pop_front().expect("a command is ahead");
        self.answered_digest = next_chain_digest(&self.answered_digest, &command.digest);
        let result = to_store(&command, self.answered_digest);
        let next = next.map(asked);
        let stored = self.client.store_result(&Writer::FIRST, &result, next.as_ref()).await?;
        let at = Instant::now();
        if let Some(page) = stored.next {
            self.read(page);
        }
        let (receipt, stored) = (stored.receipt, stored.stored);
        Ok(Answered { seq: command.seq, command_id: command.command_id, receipt, stored, at })
    }

    async fn store_many(&mut self, size: u32) -> Result<Vec<Answered>, CallError> {
        let count = self.ahead.len().min(size as usize);
        let commands: Vec<Command> = self.ahead.drain(..count).collect();
        let mut results = Vec::with_capacity(count);
        for command in &commands {
            self.answered_digest = next_chain_digest(&self.answered_digest, &command.digest);
            results.push(to_store(command, self.answered_digest));
        }
        let stored =
            self.client.store_results(&Writer::FIRST, &results, Some(&asked(size))).await?;
        let at = Instant::now();
        drop(results);
        if let Some(page) = stored.next {
            self.read(page);
        }
        let told = commands.into_iter().zip(stored.results).map(|(command, verdict)| {
            let (receipt, stored) = verdict?;
            Ok(Answered { seq: command.seq, command_id: command.command_id, receipt, stored, at })
        });
        told.collect()
    }
}

/// What comes next, without a wait: a receipt would wait with it.
fn asked(limit: u32) -> Next {
    Next { limit, wait: Duration::ZERO, cancel_rev: 0 }
}

fn to_store(command: &Command, chain_digest: Digest) -> ResultToStore<'_> {
    let (command_id, seq) = (command.command_id.as_str(), command.seq);
    ResultToStore { command_id, seq, chain_digest, result: result(seq) }
}

/// A result of 200 bytes that is that of no other command.
fn result(seq: u64) -> Bytes {
    let start = format!(r#"{{"outcome":"succeeded","output":{{"job":{seq},"log":""#);
    let rest = RESULT_BYTES - start.len() - 3;
    Bytes::from(format!(r#"{start}{:#<rest$}"}}}}"#, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_two_hundred_bytes_of_json() {
        let bytes = result(123_456);
        assert_eq!(bytes.len(), RESULT_BYTES);
        serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
    }
}
