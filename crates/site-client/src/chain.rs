//! Proof that a page continues the stream that this side has seen: no gap, swap or fork.
//!
//! The digests are computed here a second time, from the documentation and not from the server's
//! code, so that a mistake in either shows. `docs/PROTOCOL.md` has the layout:
//!
//! - A field is written as the length of its name (`u32`, big-endian), the name, the length of
//!   its value (`u64`, big-endian), the value.
//! - A command's digest is the SHA-256 of the fields `site-control/command` = `1`, `commandId`,
//!   `kind`, `runId` and `notAfter` where there is one, and `body`, in this order. `notAfter` is
//!   written in UTC with six places of the second.
//! - The chain digest is the SHA-256 of the previous chain digest and the command's digest; before
//!   the first command it is 32 zero bytes.

use chrono::SecondsFormat;
use ring::digest::{Context, SHA256, digest};
use site_protocol::{Command, CommandPage, Digest};

/// How a page contradicts the question or itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// A command has another sequence than the one that is next.
    #[error("sequence {expected} should follow, the page has {found}")]
    Gap {
        /// The sequence that should follow.
        expected: u64,
        /// The sequence that the page has.
        found: u64,
    },
    /// A command's fields do not give the digest that it carries.
    #[error("the digest of command {seq} does not match its fields")]
    CommandDigest {
        /// The command's sequence.
        seq: u64,
    },
    /// `nextAfter` is not the sequence of the last command, or, without any, the one asked after.
    #[error("nextAfter should be {expected}, the page has {found}")]
    NextAfter {
        /// What it should be.
        expected: u64,
        /// What the page has.
        found: u64,
    },
    /// `nextDigest` is not what the presented digest and the commands give.
    #[error("the chain digest at {seq} does not follow from the one that was presented")]
    ChainDigest {
        /// The sequence at which the chains differ.
        seq: u64,
    },
    /// `lastSeq` or `head` lies outside the stream that the page shows.
    #[error("lastSeq or head contradicts the commands of the page")]
    Bounds,
    /// `cancelled` names commands that the stream can't have, too many, or none that are new.
    #[error("cancelled contradicts the stream or the presented cancelRev")]
    Cancelled,
}

/// The most commands that a page may tell as cancelled.
const MAX_CANCELLED: usize = 256;

/// Checks a page that answers the question after `after`, by somebody who has seen `cancel_rev`.
///
/// Without `after_digest` (this side has not seen the stream before) the chain can't be computed:
/// sequences and command digests are checked, and `next_digest` is believed.
///
/// # Errors
///
/// [`ChainError`] names the first contradiction.
pub fn check_page(
    page: &CommandPage,
    after: u64,
    after_digest: Option<&Digest>,
    cancel_rev: u64,
) -> Result<(), ChainError> {
    let mut seq = after;
    let mut chain = if after == 0 { Some(Digest::ZERO) } else { after_digest.copied() };
    for command in &page.commands {
        // After the last number there is none.
        if seq.checked_add(1) != Some(command.seq) {
            return Err(ChainError::Gap { expected: seq.saturating_add(1), found: command.seq });
        }
        if command_digest(command) != command.digest {
            return Err(ChainError::CommandDigest { seq: command.seq });
        }
        seq = command.seq;
        if let Some(previous) = &mut chain {
            *previous = next_chain_digest(previous, &command.digest);
        }
    }
    if page.next_after != seq {
        return Err(ChainError::NextAfter { expected: seq, found: page.next_after });
    }
    if chain.is_some_and(|chain| chain != page.next_digest) {
        return Err(ChainError::ChainDigest { seq });
    }
    let head_outside = page.head.is_some_and(|head| head.seq == 0 || head.seq > page.last_seq);
    if page.last_seq < seq || head_outside {
        return Err(ChainError::Bounds);
    }
    let possible = page.cancelled.iter().all(|mark| (1..=page.last_seq).contains(&mark.seq));
    let new = page.cancelled.is_empty() || page.cancel_rev > cancel_rev;
    if !possible || !new || page.cancelled.len() > MAX_CANCELLED {
        return Err(ChainError::Cancelled);
    }
    Ok(())
}

/// The digest of a command, computed from its fields.
#[must_use]
pub fn command_digest(command: &Command) -> Digest {
    let mut context = Context::new(&SHA256);
    field(&mut context, "site-control/command", "1");
    field(&mut context, "commandId", &command.command_id);
    field(&mut context, "kind", &command.kind);
    if let Some(run_id) = &command.run_id {
        field(&mut context, "runId", run_id);
    }
    if let Some(time) = &command.not_after {
        field(&mut context, "notAfter", &time.to_rfc3339_opts(SecondsFormat::Micros, true));
    }
    field(&mut context, "body", command.body.get());
    ours(&context.finish())
}

/// The chain digest after a command, from the one before it and the command's digest.
#[must_use]
pub fn next_chain_digest(previous: &Digest, command: &Digest) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(previous.as_bytes());
    context.update(command.as_bytes());
    ours(&context.finish())
}

/// The identity of a result: the SHA-256 of its bytes without outer JSON white space.
#[must_use]
pub fn result_digest(result: &[u8]) -> Digest {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = result.iter().position(|byte| !is_space(byte)).unwrap_or(result.len());
    let end = result.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    ours(&digest(&SHA256, &result[start..end]))
}

/// The identity of a private output: the SHA-256 of its bytes.
#[must_use]
pub fn output_digest(output: &[u8]) -> Digest {
    ours(&digest(&SHA256, output))
}

fn field(context: &mut Context, name: &str, value: &str) {
    let name_length = u32::try_from(name.len()).expect("the names are the few short ones above");
    context.update(&name_length.to_be_bytes());
    context.update(name.as_bytes());
    context.update(&(value.len() as u64).to_be_bytes());
    context.update(value.as_bytes());
}

pub(crate) fn ours(digest: &ring::digest::Digest) -> Digest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    Digest::from_bytes(bytes)
}

#[cfg(test)]
mod tests;
