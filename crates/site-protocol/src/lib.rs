#![doc = include_str!("../README.md")]

mod code;
mod commands;
mod digest;
mod executions;
mod object;
mod problem;
mod ssh_access;

pub mod openapi;
pub mod paths;

pub use code::{Code, Member, Shape};
pub use commands::{
    BatchAnswer, BatchedAnswer, BatchedResult, Cancelled, Command, CommandPage, Head, Outcome,
    OutputReceipt, RUNTIME_GENERATION_HEADER, RUNTIME_SESSION_HEADER, Receipt, ReceiptAndNext,
    ResultBatch, ResultBody, Session, SessionRequest,
};
pub use digest::{Digest, DigestError};
pub use executions::{
    Action, Attempt, AttemptState, Authorisation, AuthorisationRequest, Execution, Run,
    RunRepository, RunState,
};
pub use object::Object;
pub use problem::{FieldError, PROBLEM_CONTENT_TYPE, PROBLEM_SOURCE, Problem};
pub use ssh_access::{
    MAX_SNAPSHOT_LINE_BYTES, MAX_SSH_CHANGES, MAX_SSH_FAILURES, SNAPSHOT_CONTENT_TYPE,
    SshAcknowledged, SshAcknowledgement, SshAttested, SshChange, SshChanges, SshFailure,
    SshOperation, SshSnapshotEnd, SshSnapshotHead, SshSnapshotKey,
};
