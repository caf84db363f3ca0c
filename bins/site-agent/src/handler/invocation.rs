//! What the handler reads.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use site_protocol::{Command, Digest};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation<'a> {
    command_id: &'a str,
    seq: u64,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    digest: Digest,
    created_at: DateTime<Utc>,
    #[serde(rename = "try")]
    try_number: u32,
    body: &'a RawValue,
}

/// A command as the handler gets it: one JSON object on one line, and the line break after it.
///
/// The body is the producer's text; only line breaks between its tokens become spaces (within a
/// JSON string there is none that is not escaped). `try_number` counts from 1; above 1 an earlier
/// try was cut short and may have had effects.
///
/// # Errors
///
/// None that is known: texts and numbers can be written.
pub fn invocation(command: &Command, try_number: u32) -> Result<Vec<u8>, serde_json::Error> {
    let mut input = serde_json::to_vec(&Invocation {
        command_id: &command.command_id,
        seq: command.seq,
        kind: &command.kind,
        run_id: command.run_id.as_deref(),
        digest: command.digest,
        created_at: command.created_at,
        try_number,
        body: &command.body,
    })?;
    for byte in &mut input {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    input.push(b'\n');
    Ok(input)
}
