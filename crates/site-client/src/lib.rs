#![doc = include_str!("../README.md")]

mod answer;
mod backoff;
mod chain;
mod client;
mod error;
mod origin;
mod token;
mod trust;

pub use backoff::{Backoff, RandomSource, system_random};
pub use chain::{ChainError, check_page, command_digest, next_chain_digest, result_digest};
pub use client::{PollRequest, SiteClient, Stored, Timeouts};
pub use error::{BadAnswer, CallError};
pub use origin::{Origin, OriginError};
pub use token::{TokenFile, TokenFileError};
pub use trust::{RootsError, roots_from_pem_file};
