//! Where the events come from.

use std::error::Error;

use crate::Event;

/// The outbox of one Site, as the binary joins it to a context's store.
pub trait Outbox: Send + Sync {
    /// Why it does not answer.
    type Error: Error + Send + Sync + 'static;

    /// The sequence of the last event that was published, by whomever; 0 before the first.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    fn position(&self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// The events after one, in their order and without a gap, at most `limit`.
    ///
    /// # Errors
    ///
    /// When the store does not answer, or holds an event that can't be published.
    fn after(
        &self,
        sequence: u64,
        limit: u16,
    ) -> impl Future<Output = Result<Vec<Event>, Self::Error>> + Send;

    /// Records that everything up to an event is published. It never moves the position back.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    fn published(&self, sequence: u64) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
