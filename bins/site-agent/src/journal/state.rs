//! What the lines of a journal add up to.

use std::collections::BTreeMap;

use site_protocol::Digest;

use super::{
    kept::{Keep, Kept},
    record::{OutputNote, Record},
};

/// A place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The sequence of the last command that is done; 0 before the first.
    pub(crate) seq: u64,
    /// The chain digest there.
    pub(crate) chain_digest: Digest,
}

/// What is known of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its digest: the same id with another digest is another command.
    pub(crate) digest: Digest,
    /// Its sequence when it was last seen.
    pub(crate) seq: u64,
    /// How often the handler was started for it.
    pub(crate) tries: u32,
    /// The result, once there is one.
    pub(crate) result: Option<String>,
    /// The private output that the result names.
    pub(crate) output: Option<OutputNote>,
}

/// What all records together say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) generation: Option<u64>,
    pub(super) cursor: Option<Cursor>,
    /// Commands without an ending, by their id.
    pub(super) open: BTreeMap<String, Entry>,
    /// Results of commands that have one.
    pub(super) kept: Kept,
}

impl State {
    pub(super) fn new(keep: Keep) -> Self {
        let kept = Kept::new(keep);
        Self { generation: None, cursor: None, open: BTreeMap::new(), kept }
    }

    pub(super) fn entry(&self, command_id: &str) -> Option<&Entry> {
        self.open.get(command_id).or_else(|| self.kept.get(command_id))
    }

    /// Every private output that a result here names.
    pub(super) fn outputs(&self) -> impl Iterator<Item = Digest> {
        let entries = self.open.values().chain(self.kept.entries());
        entries.filter_map(|entry| Some(entry.output?.digest))
    }

    /// Adds what one more record says; gives the private outputs of results that are dropped now.
    /// Never fails: whatever was recorded has happened.
    pub(super) fn apply(&mut self, record: Record) -> Vec<Digest> {
        match record {
            Record::Generation { generation } => self.generation = Some(generation),
            Record::Cursor { seq, chain_digest } => {
                self.cursor = Some(Cursor { seq, chain_digest });
            }
            Record::Started { seq, command_id, digest, try_number } => {
                self.open_entry(command_id, seq, digest).tries = try_number;
            }
            Record::Finished { seq, command_id, digest, result, output } => {
                let entry = self.open_entry(command_id, seq, digest);
                (entry.result, entry.output) = (Some(result), output);
            }
            Record::Received { seq, command_id, chain_digest } => {
                self.cursor = Some(Cursor { seq, chain_digest });
                let open = self.open.remove(&command_id);
                if let Some(entry) = open.or_else(|| self.kept.remove(&command_id))
                    && entry.result.is_some()
                {
                    return self.kept.push(command_id, Entry { seq, ..entry });
                }
            }
            Record::Kept { seq, command_id, digest, try_number, result, output } => {
                let result = Some(result);
                let entry = Entry { digest, seq, tries: try_number, result, output };
                return self.kept.push(command_id, entry);
            }
        }
        Vec::new()
    }

    /// The fewest records that add up to this state, made one by one: together they may be large.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let generation = self.generation.map(|generation| Record::Generation { generation });
        let cursor =
            self.cursor.map(|Cursor { seq, chain_digest }| Record::Cursor { seq, chain_digest });
        let kept = self.kept.iter().map(|(command_id, entry)| Record::Kept {
            seq: entry.seq,
            command_id: command_id.to_owned(),
            digest: entry.digest,
            try_number: entry.tries,
            result: entry.result.clone().unwrap_or_default(),
            output: entry.output,
        });
        let open = self.open.iter().flat_map(|(command_id, entry)| {
            let Entry { seq, digest, tries, output, .. } = *entry;
            let started = (tries > 0 || entry.result.is_none()).then(|| Record::Started {
                seq,
                command_id: command_id.clone(),
                digest,
                try_number: tries,
            });
            let finished = entry.result.clone().map(|result| Record::Finished {
                seq,
                command_id: command_id.clone(),
                digest,
                result,
                output,
            });
            started.into_iter().chain(finished)
        });
        generation.into_iter().chain(cursor).chain(kept).chain(open)
    }

    /// The entry of a command that is under way; one with another digest is replaced.
    fn open_entry(&mut self, command_id: String, seq: u64, digest: Digest) -> &mut Entry {
        let fresh = || Entry { digest, seq, tries: 0, result: None, output: None };
        let entry = self.open.entry(command_id).or_insert_with(fresh);
        if entry.digest != digest {
            *entry = fresh();
        }
        // After a restored database a command may stand at another place.
        entry.seq = seq;
        entry
    }
}
