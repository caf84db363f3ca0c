//! The lane `commands`: Sites, listeners and Runtimes under faults, and a checker over the whole
//! history.

mod check;
mod history;
mod producers;
mod read;
mod report;
