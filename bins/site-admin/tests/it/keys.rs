//! `site-admin keys` and `site-admin accounts`.

use serde_json::{Value, json};
use test_support::TestDatabase;

use crate::support::{Done, KEYS_REGISTRY, admin};

/// A key as it stands in a file, without a comment.
pub(crate) const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH";

const OTHER_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI";

/// An RSA key of 2,048 bits.
pub(crate) const SHORT_RSA: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB";

fn run(database: &TestDatabase, arguments: &[&str], input: &str) -> Done {
    let run = admin(arguments).with(KEYS_REGISTRY, &database.url("ssh_access_registry"));
    run.input(input.as_bytes()).run()
}

fn add(database: &TestDatabase, member: &str, key: &str) -> Done {
    run(database, &["keys", "add", "--member", member, "-"], key)
}

fn list(database: &TestDatabase, more: &[&str]) -> Vec<String> {
    let listed = run(database, &[&["keys", "list", "--member", "m-1"], more].concat(), "").ok();
    listed.lines().skip(1).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_key_is_added_once_listed_and_removed_once() {
    let database = TestDatabase::create().await;
    let said = add(&database, "m-1", &format!("{KEY} ada@home\n")).ok();
    assert!(said.starts_with("key_") && said.contains(": SHA256:"), "{said}");
    assert!(said.ends_with(", new\n") && !said.contains("ada@home"), "{said}");
    assert_eq!(add(&database, "m-1", KEY).ok(), said.replace("new", "known"));
    assert!(add(&database, "m-2", KEY).ok().ends_with(", new\n"), "two members may have one key");
    let listed = list(&database, &[]);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert!(listed[0].contains("active") && listed[0].contains("ssh-ed25519"), "{listed:?}");
    let id = said.split(':').next().unwrap();
    run(&database, &["keys", "remove", id, "--member", "m-2"], "").refused(66, "no such key");
    let said = run(&database, &["keys", "remove", id, "--member", "m-1"], "").ok();
    assert!(said.starts_with(&format!("{id}: removed, at ")), "{said}");
    let again = run(&database, &["keys", "remove", id], "").ok();
    assert_eq!(again, said.replace("removed,", "removed already,"));
    assert_eq!(list(&database, &[]), [""; 0]);
    assert_eq!(list(&database, &["--all"]).len(), 1);
    let unknown = "key_00000000000000000000000000";
    run(&database, &["keys", "remove", unknown], "").refused(66, "there is no such key");
}

#[tokio::test]
async fn what_is_no_key_is_refused_with_its_rule_and_not_repeated() {
    let database = TestDatabase::create().await;
    for (text, rule) in [
        (format!("{KEY}\n{OTHER_KEY}\n"), "one line of printable ASCII"),
        (format!("command=\"sh\" {KEY}"), "nothing stands before it"),
        (format!("{KEY} \u{7f}"), "one line of printable ASCII"),
        (KEY.replace("ssh-ed25519", "ssh-rsa"), "differs from the one before it"),
        ("x".repeat(10_000), "at most 8192 bytes"),
        (String::new(), "begins with its type"),
    ] {
        let done = add(&database, "m-1", &text);
        done.refused(65, rule);
        assert!(!done.err.contains("AAAA") && !done.err.contains("command"), "{done:?}");
    }
    add(&database, "m-1", KEY).ok();
    let end = ["keys", "add", "--member", "m-1", "--expires-at", "2999-01-01T00:00:00Z", "-"];
    run(&database, &end, KEY).refused(65, "without an end; remove it first");
    let past = ["keys", "add", "--member", "m-1", "--expires-at", "1999-01-01T00:00:00Z", "-"];
    run(&database, &past, OTHER_KEY).refused(65, "would have expired already");
    run(&database, &["keys", "add", "--member", "m-1", "/nowhere/a.pub"], "")
        .refused(66, "/nowhere");
}

#[tokio::test]
async fn a_short_rsa_key_is_taken_with_a_warning() {
    let database = TestDatabase::create().await;
    let done = add(&database, "m-1", SHORT_RSA);
    assert!(done.err.contains("should have at least 3072 bits; this one has 2048"), "{done:?}");
    done.ok();
}

#[tokio::test]
async fn an_import_adds_what_is_right_and_names_the_lines_that_are_not() {
    let database = TestDatabase::create().await;
    let line = |member: &str, key: &str| json!({ "memberId": member, "publicKey": key });
    let ends =
        json!({ "memberId": "m-1", "publicKey": OTHER_KEY, "expiresAt": "2999-01-01T00:00:00Z" });
    let input = [
        line("m-1", &format!("{KEY} ada")).to_string(),
        String::new(),
        line("m-1", &format!("restrict {KEY}")).to_string(),
        ends.to_string(),
        line("m 1", KEY).to_string(),
        json!({ "memberId": "m-1", "publicKey": KEY, "comment": "hunter2" }).to_string(),
        "hunter2".to_owned(),
        "x".repeat(20_000),
        line("m-2", KEY).to_string(),
    ]
    .join("\n");
    for state in ["new", "known"] {
        let done = run(&database, &["keys", "import", "-"], &input);
        assert_eq!(done.code, 65, "{done:?}");
        assert_eq!(done.out.lines().count(), 3, "{done:?}");
        assert!(done.out.lines().all(|line| line.ends_with(state)), "{done:?}");
        for (number, rule) in [
            (3, "nothing stands before it"),
            (5, "memberId: a member's id is"),
            (6, "is no JSON object with memberId"),
            (7, "is no JSON object with memberId"),
            (8, "a line has at most"),
        ] {
            let told = done.err.lines().find(|line| line.contains(&format!("line {number}: ")));
            assert!(told.is_some_and(|told| told.contains(rule)), "{number}: {done:?}");
        }
        assert!(done.err.contains("5 of 9 lines were refused"), "{done:?}");
        assert!(!done.err.contains("hunter2"), "{done:?}");
    }
    let listed = run(&database, &["keys", "list", "--member", "m-1", "--json"], "").ok();
    let keys: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_key = |key: &str| keys.iter().find(|found| found["publicKey"] == key).unwrap();
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert_eq!(of_key(KEY)["expiresAt"], Value::Null);
    assert_eq!(of_key(OTHER_KEY)["expiresAt"], "2999-01-01T00:00:00Z");
    // Nothing but right lines.
    let all = line("m-3", KEY).to_string();
    assert_eq!(run(&database, &["keys", "import", "-"], &all).ok().lines().count(), 1);
}

#[tokio::test]
async fn an_import_of_many_lines_stores_some_hundred_at_a_time_and_tells_each_in_its_place() {
    const LINES: usize = 1_203;
    const WRONG: [usize; 4] = [1, 501, 777, LINES];
    let database = TestDatabase::create().await;
    // The members' numbers are those of the lines, so that the order can be seen.
    let line = |number: usize| {
        let member = if WRONG.contains(&number) { String::new() } else { format!("m-{number}") };
        json!({ "memberId": member, "publicKey": KEY }).to_string()
    };
    let input: Vec<String> = (1..=LINES).map(line).collect();
    for new in [true, false] {
        let done = run(&database, &["keys", "import", "-", "--json"], &input.join("\n"));
        assert_eq!(done.code, 65, "{}", done.err);
        let told = done.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let told: Vec<_> = told.map(|key| (key["memberId"].clone(), key["new"].clone())).collect();
        let right = (1..=LINES).filter(|number| !WRONG.contains(number));
        let expected: Vec<_> =
            right.map(|number| (json!(format!("m-{number}")), json!(new))).collect();
        assert_eq!(told, expected);
        let refused: Vec<_> = done.err.lines().filter(|line| line.contains(", line ")).collect();
        assert_eq!(refused.len(), WRONG.len());
        for (told, number) in refused.iter().zip(WRONG) {
            assert!(told.contains(&format!("line {number}: memberId: ")), "{told}");
        }
        assert!(done.err.contains(&format!("4 of {LINES} lines were refused")), "{}", done.err);
    }
    let transactions = "SELECT count(DISTINCT xmin::text) FROM ssh_access.member_key";
    let row = database.superuser().await.query_one(transactions, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 3);
}

#[tokio::test]
async fn an_account_is_added_once_listed_and_removed_once() {
    let database = TestDatabase::create().await;
    let accounts = |more: &[&str]| run(&database, &[&["accounts"], more].concat(), "");
    let add = |member: &str| {
        accounts(&["add", "--site", "north-1", "--unix-user", "ada", "--member", member])
    };
    let said = add("m-1").ok();
    assert!(said.starts_with("1: added at ") && said.ends_with(", new\n"), "{said}");
    assert_eq!(add("m-1").ok(), said.replace("new", "known"));
    add("m-2").refused(65, "the user belongs to the member m-1");
    let listed = accounts(&["list", "--site", "north-1"]).ok();
    assert!(listed.lines().count() == 2 && listed.contains("ada"), "{listed}");
    assert_eq!(accounts(&["list", "--site", "south"]).ok().lines().count(), 1);
    let remove = || accounts(&["remove", "--site", "north-1", "--unix-user", "ada"]);
    let said = remove().ok();
    assert!(said.starts_with("1: removed, at "), "{said}");
    assert_eq!(remove().ok(), said.replace("removed,", "removed already,"));
    assert_eq!(accounts(&["list", "--site", "north-1"]).ok().lines().count(), 1);
    assert_eq!(accounts(&["list", "--site", "north-1", "--all"]).ok().lines().count(), 2);
    assert!(add("m-2").ok().ends_with(", new\n"));
    let nobody = accounts(&["remove", "--site", "north-1", "--unix-user", "eve"]);
    nobody.refused(66, "no member has or had this user");
}

#[tokio::test]
async fn keys_are_touched_with_the_registrys_credential_and_no_other() {
    let database = TestDatabase::create().await;
    let list = ["keys", "list", "--member", "m-1"];
    admin(&list).run().refused(64, KEYS_REGISTRY);
    for (url, reason) in [
        (database.url("ssh_access_api"), "neither ssh_access_registry nor"),
        (database.url("ssh_access_process"), "neither ssh_access_registry nor"),
        (database.url("ssh_access_owner"), "owns"),
        (database.superuser_url(), "is a superuser"),
    ] {
        for arguments in [
            &list[..],
            &["keys", "add", "--member", "m-1", "-"],
            &["keys", "import", "-"],
            &["accounts", "list", "--site", "a"],
        ] {
            admin(arguments).with(KEYS_REGISTRY, &url).run().refused(70, reason);
        }
    }
}
