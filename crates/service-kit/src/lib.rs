#![doc = include_str!("../README.md")]

pub mod admin;
pub mod alarms;
pub mod answer;
pub mod body;
pub mod call;
pub mod drain;
pub mod fields;
pub mod limits;
pub mod listener;
#[doc(hidden)]
pub mod parsers;
pub mod problem;
pub mod request_id;
pub mod router;
pub mod service;
pub mod settings;
pub mod telemetry;
pub mod tls;

mod connection;
mod seats;
mod stream_guard;

pub use alarms::Alarms;
pub use answer::{AnswerBody, BrokenOff};
pub use body::BodyLimits;
pub use call::{Call, PathParams, RequestBody, Response, json};
pub use drain::{Ending, Lifecycle, Shutdown, process_signals};
pub use limits::Limits;
pub use listener::Listener;
pub use problem::ProblemReply;
pub use request_id::{RequestId, RequestIds};
pub use router::{Answer, Router, Routes};
pub use service::{Service, healthz};
pub use settings::{EXIT_SETTINGS, Settings, SettingsErrors};
pub use telemetry::{Metrics, error_chain, init_logs, start_logs};
