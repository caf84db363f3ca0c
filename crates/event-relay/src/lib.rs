#![doc = include_str!("../README.md")]

mod event;
mod outbox;
mod publisher;
mod relay;

pub use event::{Event, EventError, EventFields};
pub use outbox::Outbox;
pub use publisher::{EXCHANGE, PublishError};
pub use relay::{Health, Pace, Relay};
