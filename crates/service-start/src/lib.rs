#![doc = include_str!("../README.md")]

mod databases;
mod events;
mod refusal;

pub use databases::{Credential, check_databases};
pub use events::{ALARM_EVENTS, events_broker, relay_events};
pub use refusal::{EXIT_SOFTWARE, EXIT_UNAVAILABLE, Refusal, address_of, bind};
