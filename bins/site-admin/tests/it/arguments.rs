//! What is wrong with a command line is said, and secrets have no place on one.

use crate::support::{
    ADMINISTRATOR, API, BINDINGS_API, BINDINGS_OWNER, BINDINGS_WRITER, KEEPER, KEYS_API,
    KEYS_OWNER, KEYS_PROCESS, KEYS_REGISTRY, OWNER, PRODUCER, RUNS_API, RUNS_OWNER, RUNS_WRITER,
    admin,
};

/// Every command, as its words; those from `provision` on need an option or an argument.
pub(crate) const COMMANDS: [&[&str]; 36] = [
    &["database", "roles"],
    &["database", "migrate"],
    &["database", "check"],
    &["commands", "prune"],
    &["status"],
    &["database", "provision"],
    &["credentials", "issue"],
    &["credentials", "revoke"],
    &["credentials", "list"],
    &["credentials", "verify"],
    &["credentials", "probe"],
    &["tls", "issue"],
    &["tls", "show"],
    &["commands", "enqueue"],
    &["commands", "list"],
    &["commands", "show"],
    &["commands", "wait"],
    &["commands", "cancel"],
    &["commands", "void"],
    &["broker", "definitions"],
    &["beto", "respond"],
    &["runs", "accept"],
    &["runs", "submit"],
    &["runs", "cancel"],
    &["runs", "show"],
    &["bindings", "retain"],
    &["bindings", "release"],
    &["bindings", "list"],
    &["keys", "add"],
    &["keys", "remove"],
    &["keys", "list"],
    &["keys", "import"],
    &["accounts", "add"],
    &["accounts", "remove"],
    &["accounts", "list"],
    &["completions"],
];

#[test]
fn every_command_is_tested_here() {
    let mut found = Vec::new();
    for area in commands_in(&admin(&["--help"]).run().ok()) {
        let commands = commands_in(&admin(&[&area, "--help"]).run().ok());
        if commands.is_empty() {
            found.push(area);
        } else {
            found.extend(commands.into_iter().map(|command| format!("{area} {command}")));
        }
    }
    let mut known = COMMANDS.map(|words| words.join(" "));
    known.sort();
    found.sort();
    assert_eq!(found, known);
}

/// The names under `Commands:` in a help text; none where a command has none below it.
fn commands_in(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let list = list.split_once("\n\n").unwrap().0;
    // A description that goes on stands further to the right.
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn an_unknown_or_incomplete_command_exits_64_with_the_usage() {
    let mut wrong: Vec<Vec<&str>> = vec![vec![], vec!["nothing"], vec!["--nothing"]];
    wrong.extend(
        COMMANDS.map(|words| words[..1].to_vec()).into_iter().filter(|words| words != &["status"]),
    );
    wrong.extend(COMMANDS.map(|words| [words, &["--nothing"]].concat()));
    wrong.extend(COMMANDS[5..].iter().map(|words| words.to_vec()));
    for arguments in wrong {
        let done = admin(&arguments).run();
        done.refused(64, "Usage: site-admin");
    }
}

#[test]
fn a_wrong_value_is_named_with_its_rule() {
    let stream = ["--site", "north-1", "--environment", "slurm"];
    let issue = ["credentials", "issue", "--grants", "g"];
    let tls = ["tls", "issue", "--directory", "d"];
    for (arguments, option, rule) in [
        ([&["commands", "list", "--site", "a b"], &stream[2..]].concat(), "--site", "a Site is"),
        (
            [&["commands", "list", "--environment", "cloud"], &stream[..2]].concat(),
            "--environment",
            "k8s or slurm",
        ),
        ([&["commands", "list", "--after", "01"], &stream[..]].concat(), "--after", "a sequence"),
        ([&["commands", "list", "--limit", "0"], &stream[..]].concat(), "--limit", "1..=1000"),
        ([&["commands", "list", "--limit", "1001"], &stream[..]].concat(), "--limit", "1..=1000"),
        ([&["commands", "show", "cmd_x"], &stream[..]].concat(), "[COMMAND_ID]", "a command id"),
        ([&["commands", "show", "--key", "a b"], &stream[..]].concat(), "--key", "a producer's"),
        ([&["commands", "enqueue", "--kind", "A"], &stream[..]].concat(), "--kind", "a kind is"),
        ([&["commands", "enqueue", "--run-id", ""], &stream[..]].concat(), "--run-id", "a Run's"),
        (vec!["runs", "show", "a/b"], "RUN_ID", "a Run's id is"),
        (vec!["runs", "cancel", ""], "RUN_ID", "a Run's id is"),
        (vec!["runs", "submit", "r", "--attempt", "0"], "--attempt", "from 1 to 1000"),
        (vec!["runs", "submit", "r", "--attempt", "1001"], "--attempt", "from 1 to 1000"),
        (vec!["bindings", "release", "0"], "BINDING_ID", "a binding's id is"),
        (vec!["bindings", "list", "--site", "a/b"], "--site", "a Site is"),
        (vec!["bindings", "list", "--member", "a b"], "--member", "a member's id is"),
        (vec!["bindings", "list", "--limit", "1001"], "--limit", "1..=1000"),
        (vec!["bindings", "retain", "--unix-user", "root"], "--unix-user", "root is nobody's"),
        (vec!["bindings", "retain", "--unix-user", "Ada"], "--unix-user", "a Unix user is"),
        (vec!["bindings", "retain", "--uid", "0"], "--uid", "a uid is"),
        (vec!["bindings", "retain", "--gid", "0"], "--gid", "a gid is"),
        (vec!["bindings", "retain", "--account", "a b"], "--account", "an account is"),
        (vec!["keys", "remove", "key_x"], "KEY_ID", "a key's id is"),
        (vec!["keys", "list", "--member", "a b"], "--member", "a member's id is"),
        (vec!["keys", "list", "--limit", "0"], "--limit", "1..=1000"),
        (vec!["keys", "add", "--expires-at", "soon"], "--expires-at", "RFC 3339"),
        (vec!["accounts", "add", "--unix-user", "root"], "--unix-user", "reserved for the system"),
        (vec!["accounts", "add", "--unix-user", "a.b"], "--unix-user", "a user is 1 to 32"),
        (vec!["accounts", "list", "--site", "a/b"], "--site", "a Site is"),
        (vec!["accounts", "list", "--after", "0"], "--after", "an account's id is"),
        ([&issue[..], &["--scope", "root"]].concat(), "--scope", "a scope is"),
        ([&issue[..], &["--site", "a/b"]].concat(), "--site", "a Site is"),
        ([&issue[..], &["--environment", "x"]].concat(), "--environment", "k8s or slurm"),
        ([&issue[..], &["--days", "0"]].concat(), "--days", "1..=366"),
        ([&issue[..], &["--days", "367"]].concat(), "--days", "1..=366"),
        ([&tls[..], &["--namespace", "A.b"]].concat(), "--namespace", "a namespace is"),
        ([&tls[..], &["--namespace=-a"]].concat(), "--namespace", "a namespace is"),
        ([&tls[..], &["--name", "a b"]].concat(), "--name", "neither a DNS name nor"),
        ([&tls[..], &["--name", "ä"]].concat(), "--name", "neither a DNS name nor"),
        ([&tls[..], &["--name", ""]].concat(), "--name", "neither a DNS name nor"),
        ([&tls[..], &["--name", "a", "--days", "3651"]].concat(), "--days", "1..=3650"),
    ] {
        let done = admin(&arguments).run();
        done.refused(64, option);
        assert!(done.err.contains(rule), "{rule}: {done:?}");
    }
}

#[test]
fn a_command_takes_one_command_or_lines_but_not_parts_of_both() {
    let stream = ["commands", "enqueue", "--site", "north-1", "--environment", "slurm"];
    for more in [
        vec!["--key", "k"],
        vec!["--key", "k", "--kind", "a"],
        vec!["--key", "k", "--body", "-"],
        vec!["--kind", "a", "--body", "-"],
        vec!["--lines", "-", "--key", "k"],
        vec!["--lines", "-", "--kind", "a"],
        vec!["--lines", "-", "--body", "-"],
        vec!["--lines", "-", "--run-id", "r"],
    ] {
        admin(&[&stream[..], &more].concat()).run().refused(64, "Usage: site-admin");
    }
}

#[test]
fn no_command_takes_a_secret_as_an_argument_or_shows_one_that_it_was_given() {
    let url = |role: &str| format!("postgresql://{role}:pa55word@127.0.0.1:1/d?sslmode=disable");
    for words in COMMANDS {
        for more in [&["--help"][..], &["--nothing"], &[]] {
            let run = admin(&[words, more].concat());
            let run = run.with(OWNER, &url("owner")).with(API, &url("api"));
            let run = run.with(PRODUCER, &url("producer")).with(ADMINISTRATOR, &url("root"));
            let run = run.with(RUNS_WRITER, &url("writer")).with(BINDINGS_WRITER, &url("writer"));
            let done = run.run();
            let said = format!("{}{}", done.out, done.err);
            assert!(!said.contains("pa55word"), "{said}");
            if more == ["--help"] {
                for option in ["--password", "--token", "--secret <", "--secret=", "--key-file"] {
                    assert!(!said.contains(option), "{words:?} takes {option}");
                }
            }
        }
    }
}

#[test]
fn the_help_of_a_command_names_its_settings() {
    for (words, setting) in [
        (&["database", "provision"][..], ADMINISTRATOR),
        (&["database", "migrate"], OWNER),
        (&["database", "check"], API),
        (&["database", "check"], PRODUCER),
        (&["database", "check"], KEEPER),
        (&["database", "migrate"], RUNS_OWNER),
        (&["database", "migrate"], BINDINGS_OWNER),
        (&["database", "check"], RUNS_API),
        (&["database", "check"], RUNS_WRITER),
        (&["database", "check"], BINDINGS_API),
        (&["database", "check"], BINDINGS_WRITER),
        (&["database", "migrate"], KEYS_OWNER),
        (&["database", "check"], KEYS_API),
        (&["database", "check"], KEYS_PROCESS),
        (&["database", "check"], KEYS_REGISTRY),
        (&["keys"], KEYS_REGISTRY),
        (&["accounts"], KEYS_REGISTRY),
        (&["runs"], RUNS_WRITER),
        (&["bindings"], BINDINGS_WRITER),
        (&["commands"], PRODUCER),
        (&["commands"], KEEPER),
        (&["status"], PRODUCER),
        (&["beto", "respond"], "BETO_RESPONDER_BROKER_URL"),
        (&["beto", "respond"], "BETO_RESPONDER_BROKER_CA_FILE"),
        (&["commands", "enqueue"], "SITE_COORDINATION_BACKLOG"),
        (&["commands", "prune"], "SITE_COORDINATION_BODIES_RETENTION_DAYS"),
        (&["commands", "prune"], "SITE_COORDINATION_RECEIPTS_RETENTION_DAYS"),
        (&["commands", "prune"], "SITE_COORDINATION_EVENTS_RETENTION_DAYS"),
    ] {
        let help = admin(&[words, &["--help"]].concat()).run().ok();
        assert!(help.contains(setting), "{words:?} needs {setting}: {help}");
    }
}
