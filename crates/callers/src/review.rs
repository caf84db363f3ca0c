//! Asking a Kubernetes cluster whose a token is: TokenReview.
//!
//! The cluster's API server is asked about each token, with our audience and by our own reviewer's
//! token. What it answers is judged strictly (`answer`); a good answer is remembered for a few
//! seconds (`memory`), callers with one token share one review (`run`), and strangers can't keep known
//! callers out (`places`, `seats`). What a caller may do is not decided here.

mod answer;
mod api_server;
mod files;
mod key;
mod memory;
mod outcome;
mod places;
mod request;
mod reviewer;
mod run;
mod seats;

pub use outcome::{Pod, ReviewError, ReviewRefusal, ReviewTrouble, Reviewed};
pub use reviewer::{OpenError, Reviewer, ReviewerSettings};

pub(crate) use answer::{Identity, verdict};
