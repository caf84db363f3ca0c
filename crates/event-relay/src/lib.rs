#![doc = include_str!("../README.md")]

mod address;
mod event;
mod outbox;
#[doc(hidden)]
pub mod parsers;
mod publisher;
mod relay;
mod transport;
mod trust;

pub use address::{BrokerUrl, BrokerUrlError};
pub use event::{Event, EventError};
pub use outbox::Outbox;
pub use publisher::{Broker, BrokerError, EXCHANGE, PublishError};
pub use relay::{Health, Pace, Relay};
pub use trust::{Trust, TrustError};
