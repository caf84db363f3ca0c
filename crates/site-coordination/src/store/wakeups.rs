//! What the tick asks and changes.

use std::time::Duration;

use database::DatabaseError;

use super::Store;
use crate::{
    Environment, SiteId, Stream,
    statements::wakeups::{Expire, ReadHeads},
};

/// What can wake somebody in a stream.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    last_seq: i64,
    cancel_rev: i64,
    done_seq: i64,
    generation: i64,
    /// How long until the command that is due expires: zero where it has, none where it never does.
    pub(crate) expires_in: Option<Duration>,
    /// The last event of the Site.
    pub(crate) last_event: i64,
}

impl Head {
    /// What a poll waits for.
    pub(crate) fn for_polls(self) -> (i64, i64, i64) {
        (self.last_seq, self.cancel_rev, self.generation)
    }

    /// What somebody waits for who wants to know how a command ended.
    pub(crate) fn for_endings(self) -> i64 {
        self.done_seq
    }
}

impl Store {
    /// The heads of a Site's streams.
    pub(crate) async fn heads(
        &self,
        site: &SiteId,
    ) -> Result<Vec<(Environment, Head)>, DatabaseError> {
        let rows = self.pool.load(ReadHeads { site: site.as_str().to_owned() }).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| {
                let (environment, last_seq, cancel_rev, done_seq, generation, expires, last_event) =
                    row;
                let environment = Environment::parse(&environment).ok()?;
                let expires_in =
                    expires.map(|millis| Duration::from_millis(millis.max(0).unsigned_abs()));
                let head =
                    Head { last_seq, cancel_rev, done_seq, generation, expires_in, last_event };
                Some((environment, head))
            })
            .collect())
    }

    /// Voids some of the commands of a stream that are due and expired, and says how many.
    pub(crate) async fn expire(&self, stream: &Stream) -> Result<u64, DatabaseError> {
        let statement = Expire {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
        };
        let voided = self.pool.load(statement).await?;
        Ok(voided.into_iter().map(|(count,)| count.unsigned_abs()).sum())
    }
}
