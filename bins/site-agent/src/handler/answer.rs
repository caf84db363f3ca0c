//! From a handler's end to the result that is sent, as its exact text.

use std::{fmt, os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use serde_json::value::RawValue;
use site_protocol::{Digest, Outcome, ResultBody};

/// The largest result, in bytes: what the Site API takes as a body.
const MAX_RESULT_BYTES: usize = 1024 * 1024;
/// The largest output of a handler, in bytes: a result less its envelope.
pub(super) const MAX_OUTPUT_BYTES: usize = MAX_RESULT_BYTES - 1024;
/// How many arrays and objects of an output may be within each other: a result less its envelope.
const MAX_OUTPUT_DEPTH: usize = 127;
/// `EX_DATAERR` of sysexits(3), the handler's word for "never".
const EXIT_REJECTED: i32 = 65;

/// What becomes of a command.
///
/// `Debug` tells the outcome alone: what a handler says and answers can be private.
pub(crate) struct Answer {
    outcome: Outcome,
    detail: Option<String>,
    output: Option<Box<RawValue>>,
    /// The bytes of a private output, to be kept and named.
    pub(crate) private_output: Option<Vec<u8>>,
}

impl Answer {
    /// A failure, with its reason for a person.
    pub(crate) fn failed(detail: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, Some(detail.into()), None)
    }

    /// The same output as a failure, because something is wrong with what came beside it.
    pub(crate) fn into_failed(self, detail: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, Some(detail.into()), self.output)
    }

    pub(super) fn with_private_output(mut self, bytes: Vec<u8>) -> Self {
        self.private_output = Some(bytes);
        self
    }

    /// The result as the exact text that is sent. `private_output` is the digest of a private
    /// output that was kept.
    pub(crate) fn text(&self, private_output: Option<Digest>) -> String {
        let Self { outcome, detail, output, .. } = self;
        let (outcome, detail, output) = (*outcome, detail.clone(), output.clone());
        serde_json::to_string(&ResultBody { outcome, detail, output, private_output })
            .expect("an outcome, a text and a checked JSON value always serialise")
    }

    fn new(outcome: Outcome, detail: Option<String>, output: Option<Box<RawValue>>) -> Self {
        Self { outcome, detail, output, private_output: None }
    }
}

/// The answer of a handler that ended by itself, or by somebody else's signal. `output` is `None`
/// when it wrote too much.
pub(super) fn of_exit(status: ExitStatus, output: Option<Vec<u8>>) -> Answer {
    let Some(output) = output else { return too_long() };
    let output = parse(&output);
    match (status.code(), output) {
        (Some(0), Ok(output)) => Answer::new(Outcome::Succeeded, None, output),
        (Some(0), Err(NotJson)) => Answer::failed(
            "The handler's output is neither empty nor one JSON value that a result can hold.",
        ),
        (Some(EXIT_REJECTED), output) => {
            let detail = "The handler rejected the command.".to_owned();
            Answer::new(Outcome::Rejected, Some(detail), output.unwrap_or_default())
        }
        (Some(code), output) => {
            failed_with(format!("The handler exited with {code}."), output.unwrap_or_default())
        }
        (None, output) => {
            let signal = status.signal().unwrap_or_default();
            let detail = format!("The handler was ended by signal {signal}.");
            failed_with(detail, output.unwrap_or_default())
        }
    }
}

/// The answer for a handler that wrote more than a result can hold.
pub(super) fn too_long() -> Answer {
    Answer::failed(format!("The handler's output is larger than {MAX_OUTPUT_BYTES} bytes."))
}

/// The answer for a handler that was ended because it took too long.
pub(super) fn timed_out(timeout: Duration) -> Answer {
    Answer::failed(format!("The handler took longer than {} s.", timeout.as_secs_f64()))
}

struct NotJson;

/// Nothing, or one JSON value with its exact text, which is not too deep for a result.
fn parse(output: &[u8]) -> Result<Option<Box<RawValue>>, NotJson> {
    let text = std::str::from_utf8(output).map_err(|_| NotJson)?;
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if text.is_empty() {
        return Ok(None);
    }
    let value = RawValue::from_string(text.to_owned()).map_err(|_| NotJson)?;
    // The Site API refuses what is deeper, for good: the command would be stuck.
    if depth(text) > MAX_OUTPUT_DEPTH { Err(NotJson) } else { Ok(Some(value)) }
}

/// How many arrays and objects of a JSON text are within each other.
fn depth(text: &str) -> usize {
    let (mut deepest, mut now, mut in_string, mut escaped) = (0, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                now += 1;
                deepest = deepest.max(now);
            }
            b']' | b'}' if !in_string => now -= 1,
            _ => {}
        }
    }
    deepest
}

fn failed_with(detail: String, output: Option<Box<RawValue>>) -> Answer {
    Answer::new(Outcome::Failed, Some(detail), output)
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}
