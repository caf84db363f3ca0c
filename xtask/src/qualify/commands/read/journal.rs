//! The journal of an agent, as `bins/site-agent` writes it: JSON lines.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use site_protocol::Digest;

use super::ReadError;
use crate::qualify::commands::history::JournalEntry;

/// A line, as far as it matters here. The first one has no record.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    record: Option<String>,
    seq: Option<u64>,
    command_id: Option<String>,
    digest: Option<Digest>,
    #[serde(rename = "try")]
    try_number: Option<u32>,
    result: Option<String>,
}

/// What a state folder's journal knows of commands, by their place. A last line without its end does
/// not count; a journal that is not there is an empty one.
pub(crate) fn journal(state_folder: &Path) -> Result<Vec<JournalEntry>, ReadError> {
    match fs::read_to_string(state_folder.join("journal")) {
        Ok(text) => parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn parse(text: &str) -> Result<Vec<JournalEntry>, ReadError> {
    let mut entries: BTreeMap<String, JournalEntry> = BTreeMap::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if !line.ends_with('\n') {
            break;
        }
        let line: Line = serde_json::from_str(line)
            .map_err(|error| format!("line {} of a journal: {error}", number + 1))?;
        let (Some(record), Some(command_id), Some(seq)) = (line.record, line.command_id, line.seq)
        else {
            continue;
        };
        let entry = entries.entry(command_id.clone()).or_insert_with(|| JournalEntry {
            command_id,
            seq,
            digest: Digest::ZERO,
            tries: 0,
            result: None,
            received: false,
        });
        entry.seq = seq;
        entry.digest = line.digest.unwrap_or(entry.digest);
        entry.tries = line.try_number.unwrap_or(entry.tries);
        entry.result = line.result.or(entry.result.take());
        entry.received |= matches!(record.as_str(), "received" | "kept");
    }
    let mut entries: Vec<_> = entries.into_values().collect();
    entries.sort_by_key(|entry| entry.seq);
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_command_add_up() {
        let digest = "07".repeat(32);
        let text = format!(
            concat!(
                r#"{{"journal":1,"origin":"https://a:1"}}"#,
                "\n",
                r#"{{"record":"generation","generation":2}}"#,
                "\n",
                r#"{{"record":"kept","seq":1,"commandId":"cmd_1","digest":"{0}","try":3,"result":"r1"}}"#,
                "\n",
                r#"{{"record":"started","seq":2,"commandId":"cmd_2","digest":"{0}","try":1}}"#,
                "\n",
                r#"{{"record":"started","seq":2,"commandId":"cmd_2","digest":"{0}","try":2}}"#,
                "\n",
                r#"{{"record":"finished","seq":2,"commandId":"cmd_2","digest":"{0}","result":"r2"}}"#,
                "\n",
                r#"{{"record":"received","seq":2,"commandId":"cmd_2","chainDigest":"{0}"}}"#,
                "\n",
                r#"{{"record":"started","seq":3,"commandId":"cmd_3","digest":"{0}","try":1}}"#,
                "\n",
                r#"{{"record":"started","seq":3,"comm"#
            ),
            digest
        );
        let entries = parse(&text).unwrap();
        let told: Vec<_> = entries
            .iter()
            .map(|e| (e.seq, e.tries, e.result.as_deref(), e.received, e.digest.as_bytes()[0]))
            .collect();
        assert_eq!(
            told,
            [(1, 3, Some("r1"), true, 7), (2, 2, Some("r2"), true, 7), (3, 1, None, false, 7)]
        );
        assert!(parse("nonsense\n").is_err());
    }
}
