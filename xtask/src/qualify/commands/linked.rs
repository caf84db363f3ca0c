//! A Runtime that links `site-client`, as an operator's own would, and behaves as badly as one can.
//!
//! It works on one stream and remembers no place: each life opens a session and goes on where that
//! says. What it keeps are the results that have a receipt. A life sends results alone and in
//! batches, at times by two senders at once, ahead of their turn, with other bytes or again. It ends
//! when it is aborted, when the next one takes its stream, in which case it goes on trying, or when
//! the database turns out to be another one. Each request is noted with its answer; nothing here
//! judges.

mod life;
mod pranks;
mod results;
mod sender;
#[cfg(test)]
mod tests;
mod work;

use std::{error::Error, path::PathBuf, time::Duration};

use site_client::{Origin, SiteClient, Timeouts, TokenFile, roots_from_pem_file};
use test_support::Random;
use tokio::{
    sync::watch,
    task::{JoinError, JoinHandle, JoinSet},
};

use super::history::{Recorder, StreamName};
use life::{Leaving, Life, Opening};
use results::Kept;
use sender::Sender;

/// How long a life may last.
const LONGEST_LIFE: Duration = Duration::from_secs(12);

/// Short, so that a fault of the network is met again and again and not waited out.
const TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(3), answer: Duration::from_secs(6) };

/// Where its Site is.
#[derive(Clone)]
pub(crate) struct LinkedSetup {
    pub(crate) stream: StreamName,
    pub(crate) origin: String,
    pub(crate) ca_file: PathBuf,
    pub(crate) token_file: PathBuf,
    pub(crate) seed: u64,
}

/// A Runtime that works. It ends with the value.
pub(crate) struct Linked {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), Trouble>>,
}

/// Its files are not what they have to be.
pub(crate) type Trouble = Box<dyn Error + Send + Sync>;

impl Linked {
    pub(crate) fn start(setup: LinkedSetup, recorder: &Recorder) -> Self {
        let (stop, is_stopped) = watch::channel(false);
        let lives = Lives {
            random: Random::from_seed(setup.seed),
            setup,
            recorder: recorder.clone(),
            stop: is_stopped,
            number: 0,
            kept: Kept::default(),
        };
        Self { stop, task: tokio::spawn(lives.run()) }
    }

    /// Returns when the request that is under way has its answer.
    pub(crate) async fn finish(mut self) -> Result<(), Trouble> {
        self.stop.send_replace(true);
        (&mut self.task).await.unwrap_or_else(|ended: JoinError| Err(ended.into()))
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One life after the other.
struct Lives {
    setup: LinkedSetup,
    recorder: Recorder,
    random: Random,
    stop: watch::Receiver<bool>,
    number: u64,
    kept: Kept,
}

impl Lives {
    async fn run(mut self) -> Result<(), Trouble> {
        // They end with this, and so does the one that works.
        let mut tasks = JoinSet::new();
        let mut opening = self.nothing_known();
        while !*self.stop.borrow() {
            let life = self.life().await?;
            let work = tasks.spawn(life.run(opening.clone()));
            let end = tokio::time::Instant::now() + self.random.duration(LONGEST_LIFE);
            opening = loop {
                let joined = tokio::select! {
                    joined = tasks.join_next_with_id() => joined,
                    () = tokio::time::sleep_until(end) => None,
                };
                match joined {
                    Some(Ok((id, leaving))) if id == work.id() => {
                        break match leaving {
                            Leaving::Recover { generation } => Opening { generation, ..opening },
                            Leaving::TakenOver | Leaving::Stopped => self.nothing_known(),
                        };
                    }
                    // Of an earlier life.
                    Some(Ok(_)) => {}
                    Some(Err(error)) if error.is_cancelled() => {}
                    Some(Err(panicked)) => return Err(panicked.into()),
                    // Its time is over: either it is gone at once, or it goes on beside the next.
                    None => {
                        if self.random.within(0..2) == 0 {
                            work.abort();
                        }
                        break self.nothing_known();
                    }
                }
            };
            let rest = self.random.duration(Duration::from_millis(300));
            tokio::time::sleep(rest).await;
        }
        while let Some(ended) = tasks.join_next().await {
            match ended {
                Err(error) if error.is_panic() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// A Runtime without a memory expects the first generation, and its results are its own.
    fn nothing_known(&mut self) -> Opening {
        Opening { generation: 1, nonce: self.random.number() }
    }

    async fn life(&mut self) -> Result<Life, Trouble> {
        self.number += 1;
        let senders = [self.sender(1).await?, self.sender(2).await?];
        Ok(Life::new(senders, self.random.split(), self.stop.clone()))
    }

    async fn sender(&self, number: u64) -> Result<Sender, Trouble> {
        let LinkedSetup { stream, origin, ca_file, token_file, .. } = &self.setup;
        let origin = Origin::parse(origin)?;
        let token = TokenFile::open(token_file).await?;
        let client = SiteClient::new(origin, roots_from_pem_file(ca_file)?, token, TIMEOUTS);
        let name = format!("sender {number} of life {}", self.number);
        let (stream, recorder) = (stream.clone(), self.recorder.clone());
        Ok(Sender { client, name, stream, recorder, kept: self.kept.clone() })
    }
}
