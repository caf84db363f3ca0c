//! A private RabbitMQ for tests: finding or installing it, running one node, and reading what it
//! delivers.

mod broker;
mod control;
mod definitions;
mod find;
mod queue;

pub use broker::{Broker, BrokerError};
pub use definitions::BrokerUser;
pub use find::{Installation, PrepareError, Search};
pub use queue::{Delivered, Queue, QueueError};
