//! From a handler's end to the result that is sent, as its exact text.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use serde_json::value::RawValue;
use site_protocol::{Outcome, ResultBody};

/// The largest result, in bytes: what the Site API takes as a body.
const MAX_RESULT_BYTES: usize = 1024 * 1024;
/// The largest output of a handler, in bytes: a result less its envelope.
pub(super) const MAX_OUTPUT_BYTES: usize = MAX_RESULT_BYTES - 1024;
/// `EX_DATAERR` of sysexits(3), the handler's word for "never".
const EXIT_REJECTED: i32 = 65;

/// The result of a handler that ended by itself, or by somebody else's signal. `output` is `None`
/// when it wrote too much.
pub(super) fn of_exit(status: ExitStatus, output: Option<Vec<u8>>) -> String {
    let Some(output) = output else { return too_long() };
    let output = parse(&output);
    match (status.code(), output) {
        (Some(0), Ok(output)) => result(Outcome::Succeeded, None, output),
        (Some(0), Err(NotJson)) => {
            failed("The handler's output is neither empty nor one JSON value.".to_owned(), None)
        }
        (Some(EXIT_REJECTED), output) => {
            let detail = "The handler rejected the command.".to_owned();
            result(Outcome::Rejected, Some(detail), output.unwrap_or_default())
        }
        (Some(code), output) => {
            failed(format!("The handler exited with {code}."), output.unwrap_or_default())
        }
        (None, output) => {
            let signal = status.signal().unwrap_or_default();
            let detail = format!("The handler was ended by signal {signal}.");
            failed(detail, output.unwrap_or_default())
        }
    }
}

/// The result for a handler that wrote more than a result can hold.
pub(super) fn too_long() -> String {
    failed(format!("The handler's output is larger than {MAX_OUTPUT_BYTES} bytes."), None)
}

/// The result for a handler that was ended because it took too long.
pub(super) fn timed_out(timeout: Duration) -> String {
    failed(format!("The handler took longer than {} s.", timeout.as_secs_f64()), None)
}

struct NotJson;

/// Nothing, or one JSON value with its exact text.
fn parse(output: &[u8]) -> Result<Option<Box<RawValue>>, NotJson> {
    let text = std::str::from_utf8(output).map_err(|_| NotJson)?;
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    if text.is_empty() {
        return Ok(None);
    }
    RawValue::from_string(text.to_owned()).map(Some).map_err(|_| NotJson)
}

fn failed(detail: String, output: Option<Box<RawValue>>) -> String {
    result(Outcome::Failed, Some(detail), output)
}

fn result(outcome: Outcome, detail: Option<String>, output: Option<Box<RawValue>>) -> String {
    serde_json::to_string(&ResultBody { outcome, detail, output, private_output: None })
        .expect("an outcome, a text and a checked JSON value always serialise")
}
