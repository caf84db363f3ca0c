//! Reading what is left when a lane has ended: the database, the handlers' notes, the agents' journals
//! and logs.
//!
//! Everything is read with means of its own, never by the product's code: that is what is judged.

mod journal;
mod logs;
mod notes;
mod rows;

use std::{error::Error, path::PathBuf};

use tokio_postgres::Client;

use super::history::{History, Recorder, StreamName};

pub(crate) use logs::agent_lines;

/// Why something could not be read.
pub(crate) type ReadError = Box<dyn Error + Send + Sync>;

/// What an agent leaves on the disk.
#[derive(Clone, Debug)]
pub(crate) struct AgentFiles {
    pub(crate) stream: StreamName,
    /// Its state folder.
    pub(crate) state: PathBuf,
    /// Where its handler notes its runs.
    pub(crate) handler_log: PathBuf,
}

/// The whole history: what was noted, and what is left. `superuser` is connected to the lane's database.
/// Every process has ended, or is at least quiet.
pub(crate) async fn history(
    recorder: &Recorder,
    superuser: &Client,
    agents: &[AgentFiles],
) -> Result<History, ReadError> {
    let database = rows::database(superuser).await?;
    let mut history = History { database, ..recorder.finish() };
    for agent in agents {
        let runs = notes::handler_runs(&agent.handler_log, history.began_at_micros)?;
        history.runs.push((agent.stream.clone(), runs));
        history.journals.push((agent.stream.clone(), journal::journal(&agent.state)?));
    }
    Ok(history)
}
