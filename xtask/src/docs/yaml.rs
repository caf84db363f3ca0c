//! A JSON value as YAML, as far as an OpenAPI document needs it: one spelling for each value, so
//! that a change of the document is a change of a few lines.

use std::fmt::Write;

use serde_json::Value;

/// These come before the other keys of their object, in this order: what a reader looks for first.
const FIRST: [&str; 18] = [
    "openapi",
    "info",
    "servers",
    "paths",
    "title",
    "operationId",
    "summary",
    "description",
    "$ref",
    "type",
    "name",
    "in",
    "required",
    "security",
    "parameters",
    "requestBody",
    "schema",
    "responses",
];

/// The text of a document.
pub(super) fn text(value: &Value) -> String {
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = block(&mut text, value, 0);
    text
}

/// Writes a value that is not empty, each line of it indented.
fn block(text: &mut String, value: &Value, indent: usize) -> std::fmt::Result {
    let space = " ".repeat(indent);
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.keys().collect();
            // Stable: the others stay in the order of the alphabet.
            keys.sort_by_key(|key| FIRST.iter().position(|first| first == key).unwrap_or(99));
            for key in keys {
                write!(text, "{space}{}:", scalar(key))?;
                nested(text, &fields[key], indent)?;
            }
        }
        Value::Array(items) => {
            for item in items {
                write!(text, "{space}-")?;
                nested(text, item, indent)?;
            }
        }
        _ => nested(text, value, indent)?,
    }
    Ok(())
}

/// Writes a value behind its key or dash.
fn nested(text: &mut String, value: &Value, indent: usize) -> std::fmt::Result {
    match value {
        Value::Object(fields) if fields.is_empty() => writeln!(text, " {{}}"),
        Value::Array(items) if items.is_empty() => writeln!(text, " []"),
        Value::Object(_) | Value::Array(_) => {
            writeln!(text)?;
            block(text, value, indent + 2)
        }
        Value::String(string) => writeln!(text, " {}", scalar(string)),
        value => writeln!(text, " {value}"),
    }
}

/// A text, quoted as in JSON (which YAML reads alike) where it could be taken for something else.
fn scalar(string: &str) -> String {
    let plain = string.starts_with(|first: char| first.is_ascii_alphabetic())
        && string.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&string.to_ascii_lowercase().as_str());
    if plain { string.to_owned() } else { Value::from(string).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_value_has_one_spelling() {
        let value = json!({
            "b": [1, "two words", {"x": true, "summary": "plain"}, []],
            "a": {"200": "no", "empty": {}, "quoted": "\"\\\n"},
            "openapi": "3.1.0",
        });
        let expected = r#"openapi: "3.1.0"
a:
  "200": "no"
  empty: {}
  quoted: "\"\\\n"
b:
  - 1
  - "two words"
  -
    summary: plain
    x: true
  - []
"#;
        assert_eq!(text(&value), expected);
    }
}
