#![doc = include_str!("../README.md")]

mod answer;
mod backoff;
mod chain;
mod client;
mod error;
#[doc(hidden)]
pub mod parsers;
mod refusal;
mod results;
mod session;
mod ssh_access;
mod writer;

pub use backoff::{Backoff, RandomSource, system_random};
pub use chain::{
    ChainError, check_page, command_digest, next_chain_digest, output_digest, result_digest,
};
pub use client::{PollRequest, SiteClient, Timeouts};
pub use error::{BadAnswer, CallError};
pub use https_client::{
    Origin, OriginError, RootsError, TokenFile, TokenFileError, roots_from_pem_file,
};
pub use refusal::Refusal;
pub use results::{Next, ResultToStore, Stored, StoredResult, StoredResults};
pub use session::{Opened, new_session_id};
pub use ssh_access::{
    FeedError, SshCursor, SshCursorError, SshLease, SshPage, SshSnapshot, SshStored,
    ssh_change_digest,
};
pub use writer::Writer;
