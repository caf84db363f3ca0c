//! A snapshot, line by line: in bounded memory, however many keys there are.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use site_protocol::{
    MAX_SNAPSHOT_LINE_BYTES, Object, SshSnapshotEnd, SshSnapshotHead, SshSnapshotKey,
};

use super::{SshCursor, SshLease, lease};
use crate::{BadAnswer, CallError};

/// A snapshot that is being read. Whoever does not read it to its end has none.
#[derive(Debug)]
pub struct SshSnapshot {
    body: Incoming,
    lines: Lines,
    content: Content,
    time: Duration,
}

impl SshSnapshot {
    /// Reads the first line. Each line has to come within `time`.
    pub(super) async fn begin(body: Incoming, time: Duration) -> Result<Self, CallError> {
        let (mut body, mut lines) = (body, Lines::default());
        let line = in_time(time, line(&mut body, &mut lines)).await?;
        let content = Content::begin(&line.ok_or(incomplete(0))?)?;
        Ok(Self { body, lines, content, time })
    }

    /// The place whose set it is.
    #[must_use]
    pub fn cursor(&self) -> SshCursor {
        self.content.cursor
    }

    /// Until when its keys may be used.
    #[must_use]
    pub fn lease(&self) -> SshLease {
        self.content.lease
    }

    /// The next key, in the order of user and key's id; `None` at the end of a whole snapshot, whose
    /// number of keys was right.
    ///
    /// # Errors
    ///
    /// [`CallError`]; what was read so far is no snapshot then.
    pub async fn next(&mut self) -> Result<Option<SshSnapshotKey>, CallError> {
        let read = in_time(self.time, line(&mut self.body, &mut self.lines));
        let Some(text) = read.await? else {
            return self.content.ended().map(|()| None);
        };
        match self.content.take(&text)? {
            Some(key) => Ok(Some(key)),
            // Nothing may follow the end.
            None => match in_time(self.time, line(&mut self.body, &mut self.lines)).await? {
                None => Ok(None),
                Some(_) => Err(self.content.bad()),
            },
        }
    }
}

/// The next line of a body, without its line break; `None` at the end of the body.
async fn line(body: &mut Incoming, lines: &mut Lines) -> Result<Option<Vec<u8>>, CallError> {
    loop {
        if let Some(line) = lines.next()? {
            return Ok(Some(line));
        }
        match body.frame().await {
            Some(Ok(frame)) => {
                // Trailers say nothing that we use.
                if let Ok(data) = frame.into_data() {
                    lines.push(data);
                }
            }
            Some(Err(error)) => return Err(CallError::Transport(Box::new(error))),
            None => return lines.ended().map(|()| None),
        }
    }
}

/// What has arrived and is no whole line yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The beginning of a line, shorter than the longest.
    begun: Vec<u8>,
    /// What arrived behind it.
    rest: Bytes,
    /// The lines so far.
    number: u64,
}

impl Lines {
    /// Takes what arrived, after the lines of what arrived before were taken out.
    pub(crate) fn push(&mut self, data: Bytes) {
        debug_assert!(self.rest.is_empty(), "the lines before were not taken out");
        self.rest = data;
    }

    /// The next whole line, without its line break.
    ///
    /// # Errors
    ///
    /// A line is too long.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, CallError> {
        let end = self.rest.iter().position(|byte| *byte == b'\n');
        let part = match end {
            Some(end) => self.rest.split_to(end + 1),
            None => std::mem::take(&mut self.rest),
        };
        if self.begun.len() + part.len() > MAX_SNAPSHOT_LINE_BYTES {
            let line = self.number + 1;
            return Err(CallError::BadAnswer(BadAnswer::Snapshot { line }));
        }
        self.begun.extend_from_slice(&part);
        if end.is_none() {
            return Ok(None);
        }
        self.number += 1;
        let mut line = std::mem::take(&mut self.begun);
        line.pop();
        Ok(Some(line))
    }

    /// Takes it that nothing more arrives.
    ///
    /// # Errors
    ///
    /// A line was begun.
    pub(crate) fn ended(&self) -> Result<(), CallError> {
        if self.begun.is_empty() { Ok(()) } else { Err(incomplete(self.number)) }
    }
}

/// What the lines say, and that they say it in their order.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) cursor: SshCursor,
    pub(crate) lease: SshLease,
    last: Option<(String, String)>,
    count: u64,
    complete: bool,
}

/// A line after the first.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    End(Object<SshSnapshotEnd>),
    Key(Object<SshSnapshotKey>),
}

impl Content {
    /// Takes the first line.
    ///
    /// # Errors
    ///
    /// It is none.
    pub(crate) fn begin(line: &[u8]) -> Result<Self, CallError> {
        let bad = || CallError::BadAnswer(BadAnswer::Snapshot { line: 1 });
        let Object(head): Object<SshSnapshotHead> =
            serde_json::from_slice(line).map_err(|_| bad())?;
        Ok(Self {
            cursor: head.cursor.parse().map_err(|_| bad())?,
            lease: lease(head.server_time, head.lease_until)?,
            last: None,
            count: 0,
            complete: false,
        })
    }

    /// Takes another line: a key, or `None` for the last line of a whole snapshot.
    ///
    /// # Errors
    ///
    /// It is neither, does not follow the one before it, or counts wrongly.
    pub(crate) fn take(&mut self, line: &[u8]) -> Result<Option<SshSnapshotKey>, CallError> {
        if self.complete {
            return Err(self.bad());
        }
        match serde_json::from_slice(line).map_err(|_| self.bad())? {
            Line::End(Object(SshSnapshotEnd { complete: true, count })) if count == self.count => {
                self.complete = true;
                Ok(None)
            }
            Line::End(_) => Err(self.bad()),
            Line::Key(Object(key)) => {
                let place = (key.unix_user.clone(), key.key_id.clone());
                if self.last.as_ref().is_some_and(|last| *last >= place) {
                    return Err(self.bad());
                }
                self.last = Some(place);
                self.count += 1;
                Ok(Some(key))
            }
        }
    }

    /// Takes it that no more line comes.
    ///
    /// # Errors
    ///
    /// The last line was not there.
    pub(crate) fn ended(&self) -> Result<(), CallError> {
        if self.complete { Ok(()) } else { Err(incomplete(self.count + 1)) }
    }

    /// The line that comes now is wrong.
    fn bad(&self) -> CallError {
        let line = self.count + if self.complete { 3 } else { 2 };
        CallError::BadAnswer(BadAnswer::Snapshot { line })
    }
}

fn incomplete(lines: u64) -> CallError {
    CallError::BadAnswer(BadAnswer::IncompleteSnapshot { lines })
}

async fn in_time<T>(
    time: Duration,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    tokio::time::timeout(time, call).await.unwrap_or_else(|elapsed| {
        let elapsed: Box<dyn Error + Send + Sync> = Box::new(elapsed);
        Err(CallError::Transport(elapsed))
    })
}

#[cfg(test)]
mod tests;
