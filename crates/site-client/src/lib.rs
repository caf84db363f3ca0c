#![doc = include_str!("../README.md")]

mod answer;
mod backoff;
mod chain;
mod client;
mod error;
mod origin;
#[doc(hidden)]
pub mod parsers;
mod refusal;
mod results;
mod session;
mod token;
mod trust;
mod writer;

pub use backoff::{Backoff, RandomSource, system_random};
pub use chain::{
    ChainError, check_page, command_digest, next_chain_digest, output_digest, result_digest,
};
pub use client::{PollRequest, SiteClient, Timeouts};
pub use error::{BadAnswer, CallError};
pub use origin::{Origin, OriginError};
pub use refusal::Refusal;
pub use results::{Next, ResultToStore, Stored, StoredResult, StoredResults};
pub use session::{Opened, new_session_id};
pub use token::{TokenFile, TokenFileError};
pub use trust::{RootsError, roots_from_pem_file};
pub use writer::Writer;
