//! A line of `site-admin commands enqueue --lines`.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;
use site_coordination::{CommandKind, Invalid, JsonText, NewCommand, ProducerKey, RunId};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    key: &'a RawValue,
    #[serde(borrow)]
    kind: &'a RawValue,
    #[serde(borrow)]
    run_id: Option<&'a RawValue>,
    #[serde(borrow)]
    not_after: Option<&'a RawValue>,
    #[serde(borrow)]
    body: &'a RawValue,
}

/// Reads a line; the reason of a failure repeats no body.
///
/// # Errors
///
/// What is wrong with it.
pub fn parse(line: &str) -> Result<NewCommand, String> {
    // The library takes a list of the values as well.
    if !line.trim_ascii_start().starts_with('{') {
        return Err("must be a JSON object".to_owned());
    }
    let line: Line<'_> = serde_json::from_str(line).map_err(|error| line_error(&error))?;
    let invalid = |error: Invalid| error.to_string();
    let text = |name: &str, raw: &RawValue| {
        serde_json::from_str::<String>(raw.get()).map_err(|_| format!("{name} must be a text"))
    };
    let run_id = line.run_id.map(|raw| text("runId", raw)).transpose()?;
    let not_after = line.not_after.map(|raw| text("notAfter", raw)).transpose()?;
    Ok(NewCommand {
        key: ProducerKey::parse(&text("key", line.key)?).map_err(invalid)?,
        kind: CommandKind::parse(&text("kind", line.kind)?).map_err(invalid)?,
        run_id: run_id.as_deref().map(RunId::parse).transpose().map_err(invalid)?,
        not_after: not_after.as_deref().map(time).transpose()?,
        body: JsonText::parse(line.body.get()).map_err(invalid)?,
    })
}

/// What is wrong with a line. The library quotes a value only where it is of another type, so that
/// the message then is ours. A field's name is told where it looks like one.
fn line_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.starts_with("invalid ") {
        return "must be a JSON object".to_owned();
    }
    // The name itself may hold the mark that ends it.
    let unknown =
        text.strip_prefix("unknown field `").and_then(|rest| rest.rsplit_once("`, expected"));
    let what = match unknown {
        Some((name, _)) if !looks_like_a_field(name) => "unknown field",
        _ => text.split(" at line ").next().unwrap_or_default(),
    };
    format!("{what}, at column {}", error.column())
}

/// Whether the name of a field can be repeated: nothing in it is odd, and it is not long.
pub(crate) fn looks_like_a_field(name: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=24).contains(&name.len()) && name.bytes().all(usual)
}

/// Takes a time in RFC 3339.
pub(super) fn time(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.with_timezone(&Utc))
        .map_err(|_| "notAfter is a time in RFC 3339, such as 2030-01-01T00:00:00Z".to_owned())
}
