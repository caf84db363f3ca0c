//! Private PostgreSQL for tests: finding it, running it, and one database a test.

mod access;
mod cluster;
mod database;
mod debian;
mod find;
mod hint_log;
mod initdb;
mod npm;
mod prepare;
mod run_as;
mod template;

pub use access::{Access, TEST_POSTGRES};
pub use cluster::{Cluster, ClusterError, Options};
pub use database::TestDatabase;
pub use find::{FindError, Installation, OLDEST_MAJOR, Search};
pub use hint_log::HintLog;
pub use prepare::{Machine, PrepareError};
pub use template::{TemplateError, make_template, migrated_database};
