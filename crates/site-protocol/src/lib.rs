#![doc = include_str!("../README.md")]

mod commands;
mod digest;
mod problem;

pub mod paths;

pub use commands::{
    BatchAnswer, BatchedAnswer, BatchedResult, Cancelled, Command, CommandPage, Head, Outcome,
    OutputReceipt, RUNTIME_GENERATION_HEADER, RUNTIME_SESSION_HEADER, Receipt, ReceiptAndNext,
    ResultBatch, ResultBody, Session, SessionRequest,
};
pub use digest::{Digest, DigestError};
pub use problem::{Code, FieldError, PROBLEM_CONTENT_TYPE, PROBLEM_SOURCE, Problem};
