//! Whether a load was done right: else its figure is void.
//!
//! Three records of the same commands are held against each other: what the enqueuers were told, what
//! the Runtime was told, and what the database holds in the end.

use std::collections::HashMap;

use site_client::Stored;
use site_coordination::Stream;
use tokio_postgres::Client;

use super::{
    enqueuers::{Acknowledged, Told},
    linked::Answered,
};

/// What is known of the commands of one load: those after `after`, to the end of the stream.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) after: u64,
    pub(crate) told: Vec<Told>,
    pub(crate) answered: Vec<Answered>,
    pub(crate) stored: Vec<StoredRow>,
}

/// A command in the database, in the order of the stream, and the digest of its result.
#[derive(Clone, Debug)]
pub(crate) struct StoredRow {
    pub(crate) seq: u64,
    pub(crate) command_id: String,
    pub(crate) result: Option<Vec<u8>>,
}

/// What was not done right.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Void {
    #[error("void: the database has a gap before command {0}")]
    Gap(u64),
    #[error("void: command {0} was answered out of its place")]
    Reorder(u64),
    #[error("void: command {0} was acknowledged to its producer and is not at its place")]
    Lost(u64),
    #[error("void: command {0} stands before one that was acknowledged before it began")]
    OrderOfCalls(u64),
    #[error("void: {told} commands were acknowledged, the stream has {stored}")]
    Count { told: usize, stored: usize },
    #[error("void: command {0} has no result, or another than its receipt says")]
    Result(u64),
    #[error("void: the result of command {0} was there before it was sent")]
    Second(u64),
}

impl Record {
    /// Nothing where every promise held.
    pub(crate) fn check(&self) -> Result<(), Void> {
        for (row, seq) in self.stored.iter().zip(self.after + 1..) {
            if row.seq != seq {
                return Err(Void::Gap(row.seq));
            }
        }
        let (told, stored) = (self.told.iter().map(Vec::len).sum(), self.stored.len());
        if told != stored {
            return Err(Void::Count { told, stored });
        }
        let place = |row: &StoredRow| (row.command_id.clone(), row.seq);
        let places: HashMap<String, u64> = self.stored.iter().map(place).collect();
        self.told.iter().try_for_each(|told| acknowledged(told, &places))?;
        self.answers()
    }

    /// The Runtime answered each command at its place, once, and each result is that of its receipt.
    fn answers(&self) -> Result<(), Void> {
        for (answer, seq) in self.answered.iter().zip(self.after + 1..) {
            if answer.seq != seq || answer.receipt.seq != seq {
                return Err(Void::Reorder(answer.seq));
            }
            if answer.stored != Stored::New {
                return Err(Void::Second(seq));
            }
        }
        let mut answers = self.answered.iter();
        for row in &self.stored {
            let answer = answers.next().filter(|answer| {
                answer.command_id == row.command_id
                    && answer.receipt.command_id == row.command_id
                    && row.result.as_deref() == Some(answer.receipt.digest.as_bytes().as_slice())
            });
            answer.ok_or(Void::Result(row.seq))?;
        }
        answers.next().map_or(Ok(()), |answer| Err(Void::Lost(answer.seq)))
    }
}

/// What one caller was told stands at the told places, in the order of its calls.
fn acknowledged(told: &Told, places: &HashMap<String, u64>) -> Result<(), Void> {
    let mut last = 0;
    for Acknowledged { seq, command_id } in told {
        if places.get(command_id) != Some(seq) {
            return Err(Void::Lost(*seq));
        }
        if *seq <= last {
            return Err(Void::OrderOfCalls(*seq));
        }
        last = *seq;
    }
    Ok(())
}

/// The commands of a stream after a sequence, with their results.
pub(crate) async fn stored(
    database: &Client,
    stream: &Stream,
    after: u64,
) -> Result<Vec<StoredRow>, tokio_postgres::Error> {
    // Joined here: the planner may know nothing yet of tables that were just filled.
    let commands = "SELECT seq, command_id FROM site_coordination.command
                     WHERE site = $1 AND environment = $2 AND seq > $3 ORDER BY seq";
    let results = "SELECT seq, digest FROM site_coordination.command_result
                    WHERE site = $1 AND environment = $2 AND seq > $3";
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&stream.site.as_str(), &stream.environment.as_str(), &after];
    let results = database.query(results, &parameters).await?;
    let mut results: HashMap<i64, Vec<u8>> =
        results.into_iter().map(|row| (row.get(0), row.get(1))).collect();
    let rows = database.query(commands, &parameters).await?;
    let row = |row: tokio_postgres::Row| {
        let seq: i64 = row.get(0);
        StoredRow { seq: seq.unsigned_abs(), command_id: row.get(1), result: results.remove(&seq) }
    };
    Ok(rows.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests;
