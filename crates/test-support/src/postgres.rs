//! Private PostgreSQL for tests: finding it, running it, and one database a test.

mod access;
mod cluster;
mod database;
mod find;
mod prepare;
mod template;

pub use access::{Access, TEST_POSTGRES};
pub use cluster::{Cluster, ClusterError, Options};
pub use database::TestDatabase;
pub use find::{FindError, Installation, OLDEST_MAJOR, Search};
pub use prepare::{PrepareError, prepare};
pub use template::{Template, TemplateError};
