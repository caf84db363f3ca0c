//! The only files that run statements: this one and those below it. (`wakeups.rs` listens for hints,
//! on a connection of its own.)

mod keeper;
mod outbox;
mod producer;
mod rows;
mod runtime;
mod views;
mod wakeups;

use database::{DatabaseError, Pool};

use crate::{
    Stream,
    statements::{Announce, OpenStream},
    wakeups::{News, channel},
};

pub(crate) use keeper::PrunedBatch;
pub(crate) use producer::EnqueuedRow;
pub(crate) use runtime::{OpenTry, OutputTry, ResultsTry, Snapshot, Target};
pub(crate) use wakeups::Head;

/// Statements of this context over one pool.
#[derive(Clone)]
pub(crate) struct Store {
    pool: Pool,
}

impl Store {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Makes the stream where it is absent.
    pub(crate) async fn open_stream(&self, stream: &Stream) -> Result<(), DatabaseError> {
        let statement = OpenStream {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
        };
        self.pool.load(statement).await.map(drop)
    }

    /// Sends hints to the listeners of the streams' Sites.
    pub(crate) async fn announce(
        &self,
        hints: impl IntoIterator<Item = (Stream, News)>,
    ) -> Result<(), DatabaseError> {
        let hints = hints.into_iter();
        let hints =
            hints.map(|(stream, news)| (channel(&stream.site), news.payload(stream.environment)));
        let (channels, payloads) = hints.unzip();
        self.pool.load(Announce { channels, payloads }).await.map(drop)
    }
}
