#![doc = include_str!("../README.md")]

mod answer;
mod ask;
mod caller;
mod health;
mod keeper;
mod line;
mod message;
#[doc(hidden)]
pub mod parsers;
mod question;
mod responder;
mod rights;
mod waiting;

pub use answer::{AnswerError, Decision};
pub use ask::{Beto, CouldNotAsk, Pace, Setup, SetupError};
pub use caller::{Caller, RESPONDER, ReplyQueue};
pub use health::Health;
pub use message::{ANSWER_TYPE, CONTENT_TYPE, EXCHANGE, LARGEST, QUESTION_TYPE, QUESTIONS};
pub use question::{About, Name, NotAName, Permission, Question, QuestionError};
pub use responder::{Asked, Heard, Responder, ResponderError};
pub use rights::{Rights, definitions};
