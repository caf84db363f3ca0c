//! What an administrator gives `site-admin`, and what it prints for others to read.

use chrono::Datelike;
use serde_json::{Value, json};
use site_admin::parsers;
use site_coordination::CommandId;

use crate::{SECRET, assert_quiet, with_secrets};

/// A line that is taken is an object that says this command; what is refused is told without what
/// stands in it.
pub(crate) fn line(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    match parsers::line::parse(&text) {
        Ok(command) => {
            crate::taken();
            assert!(text.trim_ascii_start().starts_with('{'), "no object");
            let mut again = json!({ "key": command.key.as_str(), "kind": command.kind.as_str() });
            if let Some(run_id) = &command.run_id {
                again["runId"] = run_id.as_str().into();
            }
            if let Some(time) = command.not_after {
                if !(0..=9999).contains(&time.year()) {
                    // It has no spelling in RFC 3339; who enqueues it is refused.
                    return;
                }
                again["notAfter"] = time.to_rfc3339().into();
            }
            let again = again.to_string();
            let again = format!(
                "{},\"body\":{}}}",
                again.strip_suffix('}').unwrap(),
                command.body.as_str()
            );
            let again = parsers::line::parse(&again).unwrap();
            let id = CommandId::parse("cmd_0123456789abcdefghjkmnpqrstvwxyz").unwrap();
            assert_eq!(again.key, command.key);
            assert_eq!(again.digest(&id), command.digest(&id));
        }
        Err(told) => {
            assert_quiet(&told, SECRET);
            assert!(told.len() <= 256 && !told.chars().any(char::is_control), "{told:?}");
        }
    }
}

/// A Secret says the same in YAML and in JSON: the text as it came. What is printed has visible
/// ASCII and line breaks only.
pub(crate) fn manifest(bytes: &[u8]) {
    let visible = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n');
    let mut text: Vec<u8> = bytes.iter().copied().filter(visible).collect();
    // As PEM and our own JSON end: with one line break.
    while text.last() == Some(&b'\n') {
        text.pop();
    }
    text.push(b'\n');
    if text.len() == 1 {
        return;
    }
    let text = String::from_utf8(text).unwrap();
    crate::taken();
    let (yaml, json) = parsers::manifest(&text, Some("one")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["stringData"]["grants.json"], text);
    assert_eq!(block(&yaml), text);
    let head = "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: site-api-grants\n  namespace: \"one\"\ntype: Opaque\nstringData:\n  grants.json: |";
    assert!(yaml.starts_with(head));
}

/// The literal block that ends a document, as YAML 1.2 (8.1) reads it: where its header does not say
/// so, the first line that is not empty says how far it is indented.
fn block(yaml: &str) -> String {
    let (_, block) = yaml.split_once(": |").unwrap();
    let (header, lines) = block.split_once('\n').unwrap();
    let indentation = match header.parse::<usize>() {
        // Beyond the two of the mapping around it.
        Ok(said) => 2 + said,
        Err(_) => {
            let first = lines.split('\n').find(|line| !line.trim_start_matches(' ').is_empty());
            first.map_or(0, |line| line.len() - line.trim_start_matches(' ').len())
        }
    };
    let mut text = String::new();
    for line in lines.split('\n') {
        let blank = line.len() <= indentation && line.bytes().all(|byte| byte == b' ');
        if !blank {
            let (indented, rest) = line.split_at_checked(indentation).unwrap_or((line, ""));
            assert!(
                indented.len() == indentation && indented.bytes().all(|byte| byte == b' '),
                "{line:?}"
            );
            text.push_str(rest);
        }
        text.push('\n');
    }
    text
}
