#![doc = include_str!("../README.md")]

mod action;
pub mod authority;
mod error;
mod ids;
mod material;
mod reader;
mod registry;
mod repository;
mod rights;
mod run;
mod schema;
mod statements;
mod store;

pub use action::Action;
pub use error::{AcceptError, CancelError, FinishError, ReadError, SubmitError};
pub use ids::{AttemptNumber, Environment, Invalid, MemberId, Place, ProjectId, RunId, SiteId};
pub use material::Material;
pub use reader::{Belonging, ReadRun, Runs};
pub use registry::{Done, Registry};
pub use repository::{
    Commit, GitRef, Repository, RepositoryInstance, RepositoryPath, RepositoryProject,
};
pub use rights::RIGHTS;
pub use run::{Attempt, AttemptState, Deadline, NewRun, Run, RunState};
pub use schema::{API_ROLE, CONTEXT, MIGRATIONS, WRITER_ROLE};
