//! `site-api` as its callers and its administrator meet it: the real process, real TLS, a real
//! PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod aborted;
mod batches;
mod callers;
mod certificate;
mod delivery;
mod events;
mod executions;
mod garbage;
mod grants;
mod hostile;
mod idle;
mod kubernetes;
mod limits;
mod login;
mod metrics;
mod next;
mod outage;
mod outputs;
mod poll;
mod rabbitmq;
mod requests;
mod results;
mod routes;
mod secrets;
mod sessions;
mod ssh_access;
mod start;
mod stop;
mod support;
