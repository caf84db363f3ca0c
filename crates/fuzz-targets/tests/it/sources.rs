//! Who reads bytes: the table of docs/FUZZING.md has a row for each file of ours with a sign of it, so
//! that a parser can't come without a target, or without a word about why it needs none.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use fuzz_targets::TARGETS;

use crate::corpus::root;

/// What a line of a parser has. Signs, no proof: who writes one without any of them has to think of
/// the table alone.
const SIGNS: [&str; 20] = [
    "fn parse",
    "fn from_str(",
    "serde_json::from_",
    "RawValue::from_string",
    "Deserialize",
    ".parse(",
    ".parse::<",
    "pem_slice",
    "pem_file",
    "from_pem",
    "form_urlencoded::parse",
    "httparse::Request",
    "parse_x509",
    "from_der(",
    "from_utf8",
    "parse_from_rfc3339",
    "hex::decode",
    "base32::decode",
    "ServerName::try_from",
    "Authority::try_from",
];

/// Ours that are shipped nowhere.
const NOT_SHIPPED: [&str; 2] = ["crates/fuzz-targets", "crates/test-support"];

#[test]
fn every_file_that_reads_bytes_is_in_the_table_and_no_other() {
    let table = table();
    let mut found = BTreeSet::new();
    for folder in ["crates", "bins"] {
        for package in fs::read_dir(root().join(folder)).unwrap() {
            find(&package.unwrap().path().join("src"), &mut found);
        }
    }
    let named: BTreeSet<_> = table.keys().cloned().collect();
    let missing: Vec<_> = found.difference(&named).collect();
    assert!(missing.is_empty(), "docs/FUZZING.md has no row for {missing:#?}");
    let stale: Vec<_> = named.difference(&found).collect();
    assert!(stale.is_empty(), "docs/FUZZING.md has rows for {stale:#?}");
}

#[test]
fn every_row_names_targets_or_a_reason_and_every_target_is_named() {
    let known: BTreeSet<_> = TARGETS.iter().map(|target| target.name).collect();
    let mut named = BTreeSet::new();
    for (file, reader) in table() {
        let targets: Vec<_> = reader.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        if targets.is_empty() {
            assert!(reader.starts_with("none: ") && reader.len() > 16, "{file}: {reader}");
        }
        for target in targets {
            assert!(known.contains(target.as_str()), "{file}: there is no target {target}");
            named.insert(target);
        }
    }
    let named: BTreeSet<_> = named.iter().map(String::as_str).collect();
    assert_eq!(named, known, "a target that no row names proves nothing of ours");
}

/// The rows `| file | targets or a reason |`.
fn table() -> BTreeMap<String, String> {
    let page = fs::read_to_string(root().join("docs/FUZZING.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let rows = rows.filter_map(|row| row.split_once("` | "));
    rows.filter(|(file, _)| file.ends_with(".rs"))
        .map(|(file, reader)| (file.to_owned(), reader.to_owned()))
        .collect()
}

fn find(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        if NOT_SHIPPED.iter().any(|ours| name.starts_with(ours)) {
            continue;
        }
        if path.is_dir() && !name.ends_with("/tests") {
            find(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("/tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let mut code = shipped.lines().filter(|line| !line.trim_start().starts_with("//"));
            if code.any(|line| SIGNS.iter().any(|sign| line.contains(sign))) {
                found.insert(name);
            }
        }
    }
}
