//! The producers of the lane: tasks that bring commands into one stream through every outage, and
//! know what they were told.
//!
//! A call is repeated with the same keys until it is acknowledged. After a restored database each
//! producer sends again what was acknowledged since the backup, as the control plane does from its own
//! records. Each try is noted.

mod client;
mod slow;
#[cfg(test)]
mod tests;
mod work;
mod worker;

use std::error::Error;

use database::{Pool, PoolLimits};
use site_coordination::Producer;
use test_support::Random;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};

use super::history::{Recorder, StreamName};
use worker::Worker;

pub(crate) use work::{What, Work};

/// What the producers of one stream do.
pub(crate) struct Load {
    pub(crate) stream: StreamName,
    /// The database, for the role of a producer.
    pub(crate) url: String,
    /// Producers that link the product.
    pub(crate) producers: u64,
    /// Producers that enqueue in a transaction of their own, and slowly.
    pub(crate) slow_producers: u64,
    /// The most commands in one call.
    pub(crate) longest_list: u64,
    /// The most commands without an ending: what keeps them from running away.
    pub(crate) backlog: u32,
    pub(crate) seed: u64,
}

/// Producers that work. They end with the value.
pub(crate) struct Producers {
    enough: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Producers {
    pub(crate) fn start(load: &Load, recorder: &Recorder) -> Result<Self, Box<dyn Error>> {
        let (enough, is_enough) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let mut random = Random::from_seed(load.seed);
        let mut worker = |name: String| {
            Worker::new(&load.stream, &name, recorder, random.split(), is_enough.clone())
        };
        for number in 1..=load.producers {
            let worker = worker(format!("producer {number}"))?;
            let limits = PoolLimits { connections: 1, ..PoolLimits::default() };
            let pool = Pool::new(&load.url.parse()?, "qualify producer", limits);
            let producer = Producer::new(pool).with_backlog(load.backlog);
            tasks.spawn(client::run(worker, producer, load.longest_list));
        }
        for number in 1..=load.slow_producers {
            let worker = worker(format!("slow producer {number}"))?;
            let address = slow::Address::parse(&load.url)?;
            tasks.spawn(slow::run(worker, address, load.backlog));
        }
        Ok(Self { enough, tasks })
    }

    /// Lets them draw nothing new, and returns when everything is acknowledged: also what a restore
    /// took back that was noted before this call.
    pub(crate) async fn finish(mut self) -> Result<(), JoinError> {
        self.enough.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended?;
        }
        Ok(())
    }
}
