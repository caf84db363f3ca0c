//! docs/CONTRACT.md numbers the sentences of two documents and names what shows each: a row that
//! names a file or a test that is not there is stale.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The documents, and how many sentences each has.
const DOCUMENTS: [(&str, usize); 2] =
    [("The Site API process document", 88), ("The siteTokens document", 38)];

/// What a row may be waiting for.
const PARTS: [&str; 7] = [
    "callers from Kubernetes",
    "execution authority",
    "SSH access",
    "source control",
    "member credentials",
    "joining",
    "deployment",
];

struct Row {
    number: usize,
    sentence: String,
    state: String,
    places: Vec<String>,
    tests: Vec<String>,
}

#[test]
fn every_sentence_has_a_row_and_says_where_it_stands() {
    for (document, count) in DOCUMENTS {
        let rows = rows(document);
        let numbers: Vec<_> = rows.iter().map(|row| row.number).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "{document}");
        for row in rows {
            let named = format!("{document}, {}", row.number);
            assert!(!row.sentence.is_empty(), "{named}: no sentence");
            let (built, rest) = match row.state.strip_prefix("built") {
                Some(rest) => (true, rest.strip_prefix("; ").unwrap_or(rest)),
                None => (false, row.state.as_str()),
            };
            if let Some(parts) = rest.strip_prefix("to come: ") {
                for part in parts.split(", ") {
                    assert!(PARTS.contains(&part), "{named}: no part is called {part:?}");
                }
            } else if let Some(reason) = rest.strip_prefix("not ours: ") {
                assert!(!built && reason.len() > 8, "{named}: why is it not ours?");
            } else {
                assert!(built && rest.is_empty(), "{named}: no state is called {:?}", row.state);
            }
            // What is built is shown, and what is not claims nothing.
            assert_eq!(built, !row.places.is_empty(), "{named}: where?");
            assert_eq!(built, !row.tests.is_empty(), "{named}: by which test?");
        }
    }
}

#[test]
fn every_place_and_every_test_that_is_named_is_there() {
    let mut named = 0;
    for (document, _) in DOCUMENTS {
        for row in rows(document) {
            for place in &row.places {
                let there = root().join(place).exists();
                assert!(there, "{document}, {}: no {place}", row.number);
            }
            for test in &row.tests {
                assert!(is_test(test), "{document}, {}: no test {test}", row.number);
                named += 1;
            }
        }
    }
    assert!(named > 50, "only {named} tests are named");
}

#[test]
fn a_test_that_is_gone_or_was_none_is_not_found() {
    assert!(is_test("xtask/contract::a_test_that_is_gone_or_was_none_is_not_found"));
    // A function, but no test.
    assert!(!is_test("xtask/contract::is_test"));
    assert!(!is_test("xtask/contract::a_test_that_is"));
    assert!(!is_test("xtask/operations::a_test_that_is_gone_or_was_none_is_not_found"));
    assert!(!is_test("site-api/contract::a_test_that_is_gone_or_was_none_is_not_found"));
    assert!(!is_test("no test at all"));
}

/// Whether `package/file::test` names a function that is marked as a test.
fn is_test(name: &str) -> bool {
    let Some((package, (file, test))) =
        name.split_once('/').and_then(|(package, rest)| Some((package, rest.split_once("::")?)))
    else {
        return false;
    };
    let above = ["bins", "crates", "."].map(|above| root().join(above).join(package));
    // A program may have its folder's name in common with the context that it runs.
    let folders = above.iter().filter(|folder| folder.join("Cargo.toml").is_file());
    let mut left: Vec<_> =
        folders.flat_map(|folder| ["src", "tests"].map(|part| folder.join(part))).collect();
    left.retain(|folder| folder.is_dir());
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.file_stem().is_some_and(|stem| stem == file)
            && path.extension().is_some_and(|extension| extension == "rs")
            && marks(&fs::read_to_string(&path).unwrap(), test)
        {
            return true;
        }
    }
    false
}

/// Whether a source has a test of this name: the function, below the attribute that makes it one.
fn marks(source: &str, test: &str) -> bool {
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if line.starts_with("fn ") || line.starts_with("async fn ") {
            let name = line.trim_start_matches("async ").trim_start_matches("fn ");
            if marked && name.split('(').next() == Some(test) {
                return true;
            }
            marked = false;
        }
    }
    false
}

fn rows(document: &str) -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/CONTRACT.md")).unwrap();
    let (_, section) = page.split_once(&format!("\n## {document}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix('|'));
    rows.filter(|row| !row.starts_with("No."))
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let [number, sentence, state, places, tests] = cells[..] else {
                panic!("{document}: {row}")
            };
            Row {
                number: number.parse().unwrap(),
                sentence: sentence.to_owned(),
                state: state.to_owned(),
                places: quoted(places),
                tests: quoted(tests),
            }
        })
        .collect()
}

/// What stands between backquotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
