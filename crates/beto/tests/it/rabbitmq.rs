//! Tests with a node of their own.

mod asking;
mod away;
mod hostile;
mod responding;
mod taken_away;
