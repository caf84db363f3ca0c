//! What `site-admin` prints on standard output, which may be full, or a pipe that nobody reads.

use std::{
    fmt::Display,
    io::{self, Write},
};

use serde::Serialize;

use crate::Failure;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For a person.
    Text,
    /// One JSON object a line.
    Json,
}

impl Format {
    /// Prints one result, in either of its two forms.
    pub(crate) fn print<T: Serialize + Display>(self, result: &T) -> Result<(), Failure> {
        match self {
            Self::Text => print(result),
            Self::Json => print(json(result)?),
        }
    }

    /// Prints the line above a table, which only a person needs.
    pub(crate) fn heading(self, line: impl Display) -> Result<(), Failure> {
        match self {
            Self::Text => print(line),
            Self::Json => Ok(()),
        }
    }
}

/// A result as JSON on one line. The exact text of a body may hold line breaks, which stand
/// between its tokens only, so that a space says the same.
pub(crate) fn json(result: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(result).map_err(|error| Failure::refused(&error))?;
    Ok(text.replace(['\n', '\r'], " "))
}

/// Prints a line of a result.
///
/// Where the reader has left, nothing is missed: the work goes on, and the exit code is that of the
/// work.
pub(crate) fn print(line: impl Display) -> Result<(), Failure> {
    written(write(line))
}

/// Prints a line that can't be had again, and so to somebody who reads it.
pub(crate) fn hand_over(line: &str) -> Result<(), Failure> {
    write(line).map_err(|error| Failure::output(&error))
}

/// Prints what the parser of the arguments has to say.
pub(crate) fn answer(answer: &clap::Error) -> Result<(), Failure> {
    written(answer.print().and_then(|()| io::stdout().flush()))
}

/// Says something beside the result. Where it can't be said, the exit code still tells.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn write(line: impl Display) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

fn written(done: io::Result<()>) -> Result<(), Failure> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::output(&error)),
        _ => Ok(()),
    }
}
