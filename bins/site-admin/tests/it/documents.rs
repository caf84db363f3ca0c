//! What the documents say of the program is what the program says of itself.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::admin;

fn document(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The codes and meanings that the help prints.
fn of_the_help() -> BTreeMap<u8, String> {
    let help = admin(&["--help"]).run().ok();
    let (_, table) = help.split_once("Exit codes:\n").unwrap();
    let rows = table.lines().map(|row| row.trim().split_once("  ").unwrap());
    rows.map(|(code, meaning)| (code.parse().unwrap(), meaning.to_owned())).collect()
}

/// The rows of the table below a heading, in cells.
fn table(text: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

#[test]
fn the_exit_codes_of_both_documents_are_those_of_the_program() {
    let help = of_the_help();
    assert!(help.len() > 8, "{help:?}");
    let readme = table(&document("README.md"), "Exit codes");
    let readme: BTreeMap<u8, String> =
        readme.iter().map(|row| (row[0].parse().unwrap(), row[1].clone())).collect();
    assert_eq!(readme, help);

    let operations = table(&document("../../docs/OPERATIONS.md"), "Exit codes");
    let ours = operations.iter().filter(|row| !row[3].is_empty());
    let ours: BTreeMap<u8, String> =
        ours.map(|row| (row[0].parse().unwrap(), row[3].clone())).collect();
    assert_eq!(ours, help);
}

#[test]
fn every_command_stands_in_the_readme_and_no_other() {
    let readme = document("README.md");
    let (_, rows) = readme.split_once("| Command | |\n|---|---|\n").unwrap();
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    let mut named: Vec<String> =
        rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect();
    let mut known = super::arguments::COMMANDS.map(|words| words.join(" ")).to_vec();
    named.sort();
    known.sort();
    assert_eq!(named, known);
}

#[test]
fn there_are_completions_for_each_shell_that_know_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = admin(&["completions", shell]).run().ok();
        for word in ["credentials", "revoke", "enqueue", "site-admin"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    admin(&["completions", "csh"]).run().refused(64, "csh");
}
