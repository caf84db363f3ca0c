//! The command routes: take a stream over, pull its commands, store their results and
//! outputs.

mod hints;
mod outputs;
pub(crate) mod poll;
pub(crate) mod request;
pub(crate) mod results;
pub(crate) mod sessions;
mod wire;

pub(crate) use hints::send_last_hints;
pub(crate) use outputs::store_output;
pub(crate) use poll::pull;
pub(crate) use results::{store_result, store_results};
pub(crate) use sessions::open_session;
