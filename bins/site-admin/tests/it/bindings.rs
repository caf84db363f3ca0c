//! `site-admin bindings`: native accounts of members.

use test_support::TestDatabase;

use crate::support::{BINDINGS_WRITER, Done, admin};

/// A binding as arguments.
pub(crate) const BINDING: [&str; 12] = [
    "--site",
    "north-1",
    "--member",
    "member-1",
    "--unix-user",
    "ada",
    "--uid",
    "20001",
    "--gid",
    "100",
    "--account",
    "climate",
];

fn bindings(database: &TestDatabase, arguments: &[&str]) -> Done {
    let run = admin(&[&["bindings"], arguments].concat());
    run.with(BINDINGS_WRITER, &database.url("resource_provisioning_writer")).run()
}

fn retain(database: &TestDatabase, changed: &[(&str, &str)]) -> Done {
    let mut arguments = BINDING.to_vec();
    for (option, value) in changed {
        let place = arguments.iter().position(|argument| argument == option).unwrap();
        arguments[place + 1] = value;
    }
    bindings(database, &[&["retain"], &arguments[..]].concat())
}

fn list(database: &TestDatabase, more: &[&str]) -> Vec<String> {
    let listed = bindings(database, &[&["list", "--site", "north-1"], more].concat()).ok();
    listed.lines().skip(1).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_binding_is_retained_once_listed_and_released_once() {
    let database = TestDatabase::create().await;
    let said = retain(&database, &[]).ok();
    assert!(said.starts_with("1: retained at ") && said.ends_with(", new\n"), "{said}");
    assert_eq!(retain(&database, &[]).ok(), said.replace("new", "known"));
    let conflict = "the member has another binding at the Site, 1; release it first";
    for other in [("--unix-user", "eve"), ("--uid", "20002"), ("--gid", "101"), ("--account", "x")]
    {
        retain(&database, &[other]).refused(65, conflict);
    }
    let listed = list(&database, &[]);
    assert_eq!(listed.len(), 1, "{listed:?}");
    for part in ["member-1", "ada", "20001", "100", "climate"] {
        assert!(listed[0].contains(part), "{listed:?}");
    }
    let said = bindings(&database, &["release", "1"]).ok();
    assert!(said.starts_with("1: released, at "), "{said}");
    let again = bindings(&database, &["release", "1"]).ok();
    assert_eq!(again, said.replace("released,", "released already,"));
    assert_eq!(list(&database, &[]), [""; 0]);
    assert_eq!(list(&database, &["--released"]).len(), 1);
    // Then another one may be.
    assert!(retain(&database, &[("--unix-user", "eve")]).ok().ends_with(", new\n"));
    bindings(&database, &["release", "99"]).refused(66, "there is no such binding");
}

#[tokio::test]
async fn lists_are_of_a_site_a_member_and_a_page() {
    let database = TestDatabase::create().await;
    for member in ["m1", "m2", "m3"] {
        retain(&database, &[("--member", member)]).ok();
    }
    retain(&database, &[("--site", "north-2")]).ok();
    assert_eq!(list(&database, &[]).len(), 3);
    let one = list(&database, &["--member", "m2"]);
    assert!(one.len() == 1 && one[0].contains("m2"), "{one:?}");
    let page = list(&database, &["--after", "1", "--limit", "1"]);
    assert!(page.len() == 1 && page[0].contains("m2"), "{page:?}");
}

#[tokio::test]
async fn bindings_are_touched_with_the_writers_credential_and_no_other() {
    let database = TestDatabase::create().await;
    let retain = [&["bindings", "retain"], &BINDING[..]].concat();
    admin(&retain).run().refused(64, BINDINGS_WRITER);
    for (url, reason) in [
        (database.url("resource_provisioning_api"), "neither resource_provisioning_writer nor"),
        (database.url("execution_core_writer"), "neither resource_provisioning_writer nor"),
        (database.url("resource_provisioning_owner"), "owns"),
        (database.superuser_url(), "is a superuser"),
    ] {
        for arguments in
            [&retain[..], &["bindings", "list", "--site", "a"], &["bindings", "release", "1"]]
        {
            admin(arguments).with(BINDINGS_WRITER, &url).run().refused(70, reason);
        }
    }
    let nobody = "postgresql://o:wr0ng-password@127.0.0.1:1/d?sslmode=disable";
    let done = admin(&retain).with(BINDINGS_WRITER, nobody).run();
    done.refused(69, "the database can't be reached");
    assert!(!done.err.contains("wr0ng-password"), "{done:?}");
}
