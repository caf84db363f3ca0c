//! Four callers of one producer, which keep a stream's backlog filled.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use site_coordination::{
    CommandKind, EnqueueError, Enqueued, JsonText, NewCommand, Producer, ProducerKey, Stream,
};
use tokio::{sync::Semaphore, task::JoinSet};

/// How many enqueue at once, each on a connection of the producer's four.
pub(crate) const ENQUEUERS: u32 = 4;
/// How many commands of a stream may be without a result, one by one. So few that the queue is full
/// before the window begins: then as many are enqueued as are answered, and neither side takes the
/// processor from the other.
pub(crate) const BACKLOG: u32 = 128;
/// How many batches may be.
const BACKLOG_BATCHES: u32 = 8;
/// The bytes of a command's body.
const BODY_BYTES: usize = 1024;

/// What one caller was told: its calls in their order, each with the commands in theirs.
pub(crate) type Told = Vec<Acknowledged>;

/// A command that its producer was told of.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) seq: u64,
    pub(crate) command_id: String,
}

/// What the callers of one load share.
#[derive(Clone)]
pub(crate) struct Enqueuing {
    pub(crate) producer: Producer,
    pub(crate) stream: Stream,
    /// Room for commands without a result; whoever stores a result gives one back.
    pub(crate) room: Arc<Semaphore>,
    /// How many commands a call brings.
    pub(crate) batch: u32,
    /// Makes the keys of this load those of no other.
    pub(crate) load: u32,
    /// When no more calls are begun.
    pub(crate) until: Instant,
}

/// How many commands of a stream may be without a result where they come in batches of a size.
pub(crate) fn backlog(batch: u32) -> usize {
    BACKLOG.max(BACKLOG_BATCHES * batch) as usize
}

impl Enqueuing {
    /// Enqueues until it is time, and returns what each caller was told.
    pub(crate) async fn run(self) -> Result<Vec<Told>, EnqueueError> {
        let mut callers = JoinSet::new();
        for caller in 0..ENQUEUERS {
            let enqueuing = self.clone();
            callers.spawn(async move { enqueuing.call_until_time(caller).await });
        }
        let mut told = Vec::new();
        while let Some(caller) = callers.join_next().await {
            told.push(caller.expect("a caller does not panic")?);
        }
        Ok(told)
    }

    async fn call_until_time(&self, caller: u32) -> Result<Told, EnqueueError> {
        let mut told = Told::new();
        let mut next = 0;
        while self.has_room().await {
            let numbers = next..next + self.batch;
            next = numbers.end;
            if self.batch == 1 {
                let command = command(self.load, caller, numbers.start);
                told.push(self.producer.enqueue(&self.stream, command).await?.into());
            } else {
                let commands = commands(self.load, caller, numbers);
                let enqueued = self.producer.enqueue_many(&self.stream, commands).await?;
                told.extend(enqueued.into_iter().map(Acknowledged::from));
            }
        }
        Ok(told)
    }

    /// Takes the room for one call; false when it is time.
    async fn has_room(&self) -> bool {
        let left = self.until.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return false;
        }
        match tokio::time::timeout(left, self.room.acquire_many(self.batch)).await {
            Ok(Ok(room)) => {
                room.forget();
                true
            }
            _ => false,
        }
    }
}

impl From<Enqueued> for Acknowledged {
    fn from(enqueued: Enqueued) -> Self {
        Self { seq: enqueued.seq.to_u64(), command_id: enqueued.id.as_str().to_owned() }
    }
}

fn commands(load: u32, caller: u32, numbers: Range<u32>) -> Vec<NewCommand> {
    numbers.map(|number| command(load, caller, number)).collect()
}

/// A command of 1 KiB whose key is that of no other load, caller or number.
pub(crate) fn command(load: u32, caller: u32, number: u32) -> NewCommand {
    let start = format!(r#"{{"load":{load},"caller":{caller},"number":{number},"script":""#);
    let rest = BODY_BYTES - start.len() - 2;
    let body = format!(r#"{start}{:#<rest$}"}}"#, "");
    NewCommand {
        key: ProducerKey::parse(&format!("{load}/{caller}/{number}")).expect("a short key"),
        kind: CommandKind::parse("job.submit").expect("a short kind"),
        run_id: None,
        not_after: None,
        body: JsonText::parse(&body).expect("the text is JSON"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_kibibyte_and_its_own() {
        let (one, other) = (command(1, 2, 3), command(1, 2, 4));
        assert_eq!(one.body.as_str().len(), BODY_BYTES);
        assert_ne!(one.key.as_str(), other.key.as_str());
    }
}
