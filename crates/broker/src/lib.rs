#![doc = include_str!("../README.md")]

mod address;
mod link;
#[doc(hidden)]
pub mod parsers;
mod told;
mod transport;
mod trust;

pub use address::{BrokerUrl, BrokerUrlError};
pub use link::{Broker, BrokerError, ConnectError, Link};
pub use told::told;
pub use trust::{Trust, TrustError};
