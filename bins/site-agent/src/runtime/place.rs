//! A fresh journal's place in the stream.

use std::time::Duration;

use site_client::{PollRequest, Writer};
use site_protocol::Digest;

use super::{Halt, Runtime};
use crate::journal::Cursor;

impl Runtime {
    /// Finds the place before the command whose result is due, so that a Runtime with a new state
    /// folder does not repeat a stream's whole past, and records it.
    pub(super) async fn find_place(&mut self) -> Result<Cursor, Halt> {
        let cursor = loop {
            if let Some(cursor) = self.ask_for_place().await? {
                break cursor;
            }
            self.back_off(None).await?;
        };
        while let Err(error) = self.journal.begin_after(cursor) {
            self.own_trouble("journal.not_written", &error).await?;
        }
        self.backoff.reset();
        Ok(cursor)
    }

    /// Nothing when the answers don't fit together, because the stream changed between them.
    async fn ask_for_place(&mut self) -> Result<Option<Cursor>, Halt> {
        let first = self.poll(&look_after(0)).await?;
        let seq = first.head.map_or(first.last_seq, |head| head.seq.saturating_sub(1));
        let Some(before) = seq.checked_sub(1) else {
            let fits = !first.superseded;
            return Ok(fits.then_some(Cursor { seq, chain_digest: Digest::ZERO }));
        };
        let page = self.poll(&look_after(before)).await?;
        let fits = page.next_after == seq;
        Ok(fits.then_some(Cursor { seq, chain_digest: page.next_digest }))
    }
}

/// A look at one command without waiting.
fn look_after(after: u64) -> PollRequest {
    PollRequest {
        writer: Writer::FIRST,
        after,
        after_digest: None,
        cancel_rev: 0,
        limit: 1,
        wait: Duration::ZERO,
    }
}
