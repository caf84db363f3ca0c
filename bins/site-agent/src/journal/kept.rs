//! Results whose receipt is here, kept for the day on which an older database is restored: then the
//! Site API asks for them again, and no handler runs twice.
//!
//! Those of the first places go first. In the order of their receipts it would be otherwise: after a
//! restored database a result that has to be made again would push out the one that is due next.

use std::collections::{BTreeSet, HashMap};

use site_protocol::Digest;

use super::state::Entry;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    /// The most results.
    pub(crate) results: usize,
    /// The most bytes that they take together.
    pub(crate) result_bytes: u64,
    /// The most bytes that their private outputs take together.
    pub(crate) output_bytes: u64,
}

/// The kept results, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    keep: Keep,
    /// By command id; each has a result.
    entries: HashMap<String, Entry>,
    /// Sequences and ids.
    order: BTreeSet<(u64, String)>,
    /// Sums of what a line may claim each: too many bits to overflow.
    result_bytes: u128,
    output_bytes: u128,
}

impl Kept {
    pub(super) fn new(keep: Keep) -> Self {
        let (entries, order) = (HashMap::new(), BTreeSet::new());
        Self { keep, entries, order, result_bytes: 0, output_bytes: 0 }
    }

    pub(super) fn get(&self, command_id: &str) -> Option<&Entry> {
        self.entries.get(command_id)
    }

    /// All entries, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// In the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.order.iter().filter_map(|(_, id)| Some((id.as_str(), self.get(id)?)))
    }

    pub(super) fn remove(&mut self, command_id: &str) -> Option<Entry> {
        let (command_id, entry) = self.entries.remove_entry(command_id)?;
        self.order.remove(&(entry.seq, command_id));
        self.result_bytes -= result_bytes(&entry);
        self.output_bytes -= output_bytes(&entry);
        Some(entry)
    }

    /// Adds one, and drops those of the first places until all bounds hold, perhaps that very one;
    /// gives the private outputs of those.
    pub(super) fn push(&mut self, command_id: String, entry: Entry) -> Vec<Digest> {
        self.remove(&command_id);
        self.result_bytes += result_bytes(&entry);
        self.output_bytes += output_bytes(&entry);
        self.order.insert((entry.seq, command_id.clone()));
        self.entries.insert(command_id, entry);
        let mut dropped = Vec::new();
        while self.is_too_much()
            && let Some((_, first)) = self.order.first()
        {
            let first = first.clone();
            dropped.extend(self.remove(&first).and_then(|entry| Some(entry.output?.digest)));
        }
        dropped
    }

    fn is_too_much(&self) -> bool {
        self.entries.len() > self.keep.results
            || self.result_bytes > self.keep.result_bytes.into()
            || self.output_bytes > self.keep.output_bytes.into()
    }
}

fn result_bytes(entry: &Entry) -> u128 {
    entry.result.as_ref().map_or(0, |result| result.len() as u128)
}

fn output_bytes(entry: &Entry) -> u128 {
    entry.output.map_or(0, |output| output.bytes.into())
}
