//! An error as a reason on one line.

use std::error::Error;

/// The error and its causes, from the outermost to the innermost.
#[must_use]
pub fn told(error: &dyn Error) -> String {
    let mut chain = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        chain.push_str(": ");
        chain.push_str(&error.to_string());
        source = error.source();
    }
    chain
}
