//! What the faults of a proxy have hit.

use std::sync::atomic::{AtomicU64, Ordering};

/// What has gone through a proxy, and what its faults have hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// Connections that callers opened.
    pub connections: u64,
    /// Connections for which no server answered.
    pub unreachable: u64,
    /// Pieces that waited for a drawn time.
    pub delayed: u64,
    /// Connections that were reset with all others.
    pub cut: u64,
    /// Answers that were cut after their request had been passed on whole.
    pub answers_cut: u64,
    /// Connections and pieces that came into the black hole.
    pub held: u64,
    /// Connections that were reset before their first byte.
    pub refused: u64,
    /// Requests that got the page of a gateway.
    pub pages: u64,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) connections: Count,
    pub(super) unreachable: Count,
    pub(super) delayed: Count,
    pub(super) cut: Count,
    pub(super) answers_cut: Count,
    pub(super) held: Count,
    pub(super) refused: Count,
    pub(super) pages: Count,
}

#[derive(Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counts {
    pub(super) fn read(&self) -> ProxyCounts {
        ProxyCounts {
            connections: self.connections.read(),
            unreachable: self.unreachable.read(),
            delayed: self.delayed.read(),
            cut: self.cut.read(),
            answers_cut: self.answers_cut.read(),
            held: self.held.read(),
            refused: self.refused.read(),
            pages: self.pages.read(),
        }
    }
}
