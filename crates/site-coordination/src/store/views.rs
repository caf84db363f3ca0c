//! What is read of private outputs.

use database::DatabaseError;

use super::{Store, rows};
use crate::{
    ReadError, RunId, RunOutput, Seq, Stream,
    statements::views::{ReadOutputPart, ReadRunOutput},
};

impl Store {
    /// The private output that the newest result of a Run names.
    pub(crate) async fn run_output(
        &self,
        stream: &Stream,
        run: &RunId,
    ) -> Result<Option<RunOutput>, ReadError> {
        let statement = ReadRunOutput {
            site: stream.site.as_str().to_owned(),
            environment: stream.environment.as_str(),
            run_id: run.as_str().to_owned(),
        };
        let Some(row) = self.pool.load(statement).await?.into_iter().next() else {
            return Ok(None);
        };
        let (seq, command, digest, bytes, stored_at) = row;
        Ok(Some(RunOutput {
            stream: stream.clone(),
            seq: Seq::from_database(seq),
            command: rows::command_id(&command)?,
            digest: rows::digest_of(&digest)?,
            bytes: u64::try_from(bytes).map_err(|_| ReadError::Corrupt("a length"))?,
            stored_at,
        }))
    }

    /// `length` bytes of an output at the most, after so many; `None` where it is not there.
    pub(crate) async fn output_part(
        &self,
        output: &RunOutput,
        after: i32,
        length: i32,
    ) -> Result<Option<Vec<u8>>, DatabaseError> {
        let statement = ReadOutputPart {
            site: output.stream.site.as_str().to_owned(),
            environment: output.stream.environment.as_str(),
            seq: output.seq.get(),
            digest: *output.digest.as_bytes(),
            first: after + 1,
            length,
        };
        Ok(self.pool.load(statement).await?.into_iter().next().map(|(bytes,)| bytes))
    }
}
