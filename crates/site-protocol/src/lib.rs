#![doc = include_str!("../README.md")]

mod commands;
mod digest;
mod problem;

pub mod paths;

pub use commands::{
    Command, CommandPage, Head, Outcome, RUNTIME_GENERATION_HEADER, Receipt, ResultBody,
};
pub use digest::{Digest, DigestError};
pub use problem::{Code, FieldError, PROBLEM_CONTENT_TYPE, PROBLEM_SOURCE, Problem};
