//! docs/OPERATIONS.md names what the programs have, and nothing that they have not: settings,
//! events of the log, alarms, metrics and exit codes. What is compared are the names; the sources
//! are read as text.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

type Names = BTreeSet<String>;

#[test]
fn every_setting_is_documented_and_every_documented_one_is_read() {
    let page = section("Settings");
    let documented: Names =
        first_cells(&page).flat_map(|cell| quoted(&cell)).filter(|name| is_setting(name)).collect();
    let read: Names = sources().iter().flat_map(|source| literals(source)).collect();
    let read: Names = read.into_iter().filter(|name| is_setting(name)).collect();
    let read: Names = read.difference(&NOT_SETTINGS.map(str::to_owned).into()).cloned().collect();
    compare(&documented, &read);
}

/// What looks like a setting and is none: Kubernetes makes variables of the first form for each
/// Service, and the agent gives the last to its handlers.
const NOT_SETTINGS: [&str; 3] = ["SITE_API_PORT", "SSH_ACCESS_PORT", "SITE_AGENT_OUTPUT_FILE"];

fn is_setting(name: &str) -> bool {
    let prefixes =
        ["BETO_", "SITE_", "SSH_ACCESS_", "EVENTS_", "EXECUTION_CORE_", "RESOURCE_PROVISIONING_"];
    let character = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    prefixes.iter().any(|prefix| name.starts_with(prefix) && name.len() > prefix.len())
        && name.bytes().all(character)
        && !name.ends_with('_')
}

#[test]
fn every_event_of_the_log_is_documented_and_every_documented_one_is_logged() {
    let pages = [
        "Events of `site-api`",
        "Events of `ssh-access`",
        "Events of `site-agent`",
        "Events of the event relay",
    ];
    let documented: Names = pages
        .iter()
        .filter_map(|heading| try_section(heading))
        .flat_map(|page| first_cells(&page).flat_map(|cell| quoted(&cell)).collect::<Vec<_>>())
        .filter(|name| is_event(name))
        .collect();
    let mut logged = Names::new();
    for source in sources() {
        for level in ["error", "warn", "info", "debug", "$level"] {
            for call in source.split(&format!("tracing::{level}!(")).skip(1) {
                let call = arguments(call);
                logged.extend(literals(call).into_iter().rfind(|name| is_event(name)));
            }
        }
    }
    compare(&documented, &logged);
}

/// The arguments of a call, up to the parenthesis that ends it.
fn arguments(call: &str) -> &str {
    let (mut depth, mut quoted) = (1, false);
    for (place, character) in call.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &call[..place];
        }
    }
    call
}

fn is_event(name: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    name.split_once('.').is_some_and(|(area, what)| word(area) && word(what))
}

#[test]
fn every_alarm_is_documented_and_every_documented_one_can_be_raised() {
    let page = section("Alarms");
    let documented: Names =
        first_cells(&page).filter_map(|cell| quoted(&cell).into_iter().next()).collect();
    let mut raised = Names::new();
    let mut known = Names::new();
    for source in sources() {
        known.extend(literals(&source));
        for mark in ["const ALARM_", "alarm.name = \""] {
            for place in source.split(mark).skip(1) {
                let line = place.lines().next().unwrap();
                let line = if mark.ends_with('"') { format!("\"{line}") } else { line.to_owned() };
                raised.extend(literals(&line).into_iter().take(1));
            }
        }
    }
    let missing: Vec<_> = raised.difference(&documented).collect();
    assert!(missing.is_empty(), "not in OPERATIONS.md: {missing:?}");
    let unknown: Vec<_> = documented.difference(&known).collect();
    assert!(unknown.is_empty(), "in no source: {unknown:?}");
    assert!(raised.len() > 4, "{raised:?}");
}

#[test]
fn every_type_of_event_is_documented_and_every_documented_one_is_written() {
    let page = section("The events of a Site");
    let is_type = |name: &&str| name.matches('.').count() == 2 && !name.contains(['#', '*', ' ']);
    let first: Vec<_> = first_cells(&page).flat_map(|cell| quoted(&cell)).collect();
    let documented: Names =
        first.iter().map(String::as_str).filter(is_type).map(str::to_owned).collect();
    let mut written = Names::new();
    let folders = ["site-coordination", "ssh-access"];
    let migrations = folders
        .iter()
        .flat_map(|context| fs::read_dir(root().join("migrations").join(context)).unwrap());
    for migration in migrations {
        let sql = fs::read_to_string(migration.unwrap().path().join("up.sql")).unwrap();
        let code = sql.lines().filter(|line| !line.starts_with("--"));
        let literals = code.flat_map(|line| line.split('\'').skip(1).step_by(2));
        written.extend(literals.filter(is_type).map(str::to_owned));
    }
    assert_eq!(documented, written);
    assert!(written.len() > 2, "{written:?}");
}

#[test]
fn every_metric_is_documented_and_every_documented_one_is_counted() {
    let page = section("Metrics");
    let page = page.split("\n| `end`").next().unwrap();
    let documented: Names =
        first_cells(page).filter_map(|cell| quoted(&cell).into_iter().next()).collect();
    let mut counted = Names::new();
    let mut known = Names::new();
    for source in sources() {
        known.extend(literals(&source));
        for kind in ["counter", "gauge", "histogram"] {
            for call in source.split(&format!("metrics::{kind}!(")).skip(1) {
                let first = call.trim_start();
                // A name of its own kind is a constant, which stands among the literals.
                if first.starts_with('"') {
                    counted.extend(literals(first).into_iter().take(1));
                }
            }
        }
    }
    let missing: Vec<_> = counted.difference(&documented).collect();
    assert!(missing.is_empty(), "not in OPERATIONS.md: {missing:?}");
    let unknown: Vec<_> = documented.difference(&known).collect();
    assert!(unknown.is_empty(), "in no source: {unknown:?}");
    assert!(counted.len() > 4, "{counted:?}");
}

/// The codes of `site-admin` are compared by its own tests, with their meanings.
#[test]
fn the_exit_codes_of_the_services_are_those_of_the_table() {
    let page = section("Exit codes");
    let column = |index: usize| -> BTreeSet<u8> {
        let rows = page.lines().filter(|line| line.starts_with('|')).map(cells);
        let rows = rows.filter(|row| row.len() > index && !row[index].is_empty());
        rows.filter_map(|row| row[0].parse().ok()).collect()
    };
    let agent = fs::read_to_string(root().join("bins/site-agent/src/exit.rs")).unwrap();
    assert_eq!(column(2), arms(&agent));

    let drain = fs::read_to_string(root().join("crates/service-kit/src/drain.rs")).unwrap();
    let (_, codes) = drain.split_once("fn exit_code(self)").unwrap();
    let mut api = arms(codes.split_once("\n    }\n").unwrap().0);
    for source in sources_of(&[
        "bins/site-api/src",
        "bins/ssh-access/src",
        "crates/service-start/src",
        "crates/service-kit/src",
    ]) {
        for place in source.split("const EXIT_").skip(1) {
            let (_, value) = place.split_once("= ").unwrap();
            api.insert(value.split(';').next().unwrap().parse().unwrap());
        }
    }
    assert_eq!(column(1), api);
}

/// The numbers at which arms of a `match` end.
fn arms(source: &str) -> BTreeSet<u8> {
    let arms = source.lines().filter_map(|line| line.trim().split_once(" => "));
    arms.filter_map(|(_, value)| value.trim_end_matches(',').parse().ok()).collect()
}

fn compare(documented: &Names, code: &Names) {
    let missing: Vec<_> = code.difference(documented).collect();
    let unknown: Vec<_> = documented.difference(code).collect();
    assert!(missing.is_empty(), "not in OPERATIONS.md: {missing:?}");
    assert!(unknown.is_empty(), "only in OPERATIONS.md: {unknown:?}");
    assert!(code.len() > 10, "{code:?}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn section(heading: &str) -> String {
    try_section(heading).unwrap_or_else(|| panic!("no section {heading}"))
}

fn try_section(heading: &str) -> Option<String> {
    let page = fs::read_to_string(root().join("docs/OPERATIONS.md")).unwrap();
    let (_, section) = page.split_once(&format!("\n## {heading}\n"))?;
    Some(section.split("\n## ").next().unwrap().to_owned())
}

fn first_cells(page: &str) -> impl Iterator<Item = String> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    rows.map(|row| cells(row).remove(0)).filter(|cell| !cell.starts_with("---"))
}

fn cells(row: &str) -> Vec<String> {
    let row = row.strip_prefix('|').unwrap().strip_suffix('|').unwrap();
    row.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// What stands between backquotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The texts of the programs and of the crates that they are made of, without their tests.
fn sources() -> Vec<String> {
    let mut folders = Vec::new();
    for above in ["bins", "crates"] {
        for entry in fs::read_dir(root().join(above)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name != "test-support" {
                folders.push(format!("{above}/{name}/src"));
            }
        }
    }
    sources_of(&folders.iter().map(String::as_str).collect::<Vec<_>>())
}

fn sources_of(folders: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_stem().is_some_and(|stem| stem != "tests")
        {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            found.push(code.collect::<Vec<_>>().join("\n") + "\n");
        }
    }
    found
}

/// The literals of a source that are names: no escape and no white space is in them.
fn literals(source: &str) -> Vec<String> {
    let name = |text: &&str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
    };
    // Between any two quotes: what stands between literals is no name.
    source.split('"').skip(1).filter(name).map(str::to_owned).collect()
}
