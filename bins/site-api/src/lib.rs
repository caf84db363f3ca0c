//! `site-api`: the Site API of one Site, behind one HTTPS listener.
//!
//! It is a library so that tests can reach its parsers, see `parsers`; nothing else depends on it.
//!
//! It assembles: reads its settings, gives each context its own restricted credential, maps callers
//! to calls and errors to problems, and stops in order. The rules are in the context crates.

mod authenticate;
mod authority;
mod certificate;
mod commands;
mod databases;
mod events;
mod executions;
mod files;
mod grants;
mod limits;
mod login;
#[doc(hidden)]
pub mod parsers;
mod problems;
mod routes;
mod service_accounts;
mod settings;
mod ssh_access;
mod start;
mod state;
mod watch;

pub use start::{Clock, run};
