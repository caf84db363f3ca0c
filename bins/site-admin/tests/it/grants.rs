//! `site-admin credentials revoke`, `list` and `verify`, and the manifest of a grants file.

use std::fs;

use serde_json::Value;

use crate::support::{Done, Grants, RUNTIME, files};

const AGENT: [&str; 4] = ["--scope", "ssh-access", "--site", "north-1"];

impl Grants {
    /// Issues a bearer into a file.
    fn issued(&self, who: &[&str], file: &str) -> String {
        let out = self.folder.path().join(file).display().to_string();
        self.issue(&[who, &["--out", &out]].concat()).ok();
        out
    }

    fn verify(&self, file: &str) -> Done {
        self.credentials("verify", &["--bearer", file]).run()
    }
}

fn object(line: &str) -> Value {
    let value: Value = serde_json::from_str(line).unwrap();
    assert!(value.is_object(), "{line}");
    value
}

#[test]
fn a_revoked_bearer_is_no_longer_active_and_another_can_be_issued() {
    let grants = Grants::new();
    let bearer = grants.issued(&RUNTIME, "bearer");
    assert!(grants.verify(&bearer).ok().starts_with("commands@north-1 "));
    let said = grants.credentials("revoke", &["--scope", "commands", "--site", "north-1"]).run();
    assert!(said.ok().contains(": revoked at "));
    let done = grants.verify(&bearer);
    assert_eq!(done.code, 77, "{done:?}");
    assert!(done.out.contains(": revoked at "), "{done:?}");
    let next = grants.issued(&RUNTIME, "next");
    grants.verify(&next).ok();
    assert_eq!(grants.verify(&bearer).code, 77);
}

#[test]
fn revoking_again_changes_nothing_and_says_so() {
    let grants = Grants::new();
    grants.issued(&RUNTIME, "bearer");
    let id = grants.grant(0)["id"].as_str().unwrap().to_owned();
    let first = grants.credentials("revoke", &["--id", &id, "--json"]).run().ok();
    assert_eq!(object(&first)["changed"], true);
    let before = grants.text();
    for which in [&["--id", &id][..], &["--scope", "commands", "--site", "north-1"]] {
        let said = grants.credentials("revoke", which).run().ok();
        assert!(said.contains("was revoked already") && said.contains("nothing was changed"));
        let again =
            object(&grants.credentials("revoke", &[which, &["--json"]].concat()).run().ok());
        assert_eq!(again["changed"], false);
        assert_eq!(again["revokedAt"], object(&first)["revokedAt"]);
        assert_eq!(grants.text(), before);
    }
}

#[test]
fn what_has_no_grant_can_not_be_revoked() {
    let grants = Grants::new();
    grants.issued(&RUNTIME, "bearer");
    let before = grants.text();
    let revoke = |which: &[&str]| grants.credentials("revoke", which).run();
    revoke(&["--id", "0000000000000000"]).refused(66, "no grant has the id 0000000000000000");
    revoke(&AGENT).refused(66, "ssh-access@north-1 has no grant to revoke");
    for wrong in [
        &["--scope", "commands"][..],
        &["--site", "north-1"],
        &["--id", "0000000000000000", "--site", "north-1"],
        &["--id", "I000000000000000"],
    ] {
        revoke(wrong).refused(64, "error: ");
    }
    assert_eq!(grants.text(), before);
    fs::write(grants.path(), "{}").unwrap();
    revoke(&AGENT).refused(65, "grants: is missing");
}

#[test]
fn every_grant_is_listed_with_its_state_and_no_digest() {
    let grants = Grants::new();
    grants.issued(&RUNTIME, "bearer");
    grants.issued(&AGENT, "agent");
    grants.credentials("revoke", &AGENT).run().ok();
    let table = grants.credentials("list", &[]).run().ok();
    let rows: Vec<Vec<_>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..4], ["ID", "PRINCIPAL", "ENV", "STATE"]);
    assert_eq!(rows[1][1..4], ["commands@north-1", "slurm", "active"]);
    assert_eq!(rows[2][1..4], ["ssh-access@north-1", "-", "revoked"]);

    let json = grants.credentials("list", &["--json"]).run().ok();
    let listed: Vec<_> = json.lines().map(object).collect();
    assert_eq!(listed.len(), 2);
    for (index, row) in listed.iter().enumerate() {
        let grant = grants.grant(index);
        for field in ["id", "principal", "scope", "site", "issuedAt", "expiresAt"] {
            assert_eq!(row[field], grant[field], "{field}");
        }
        let digest = grant["digest"].as_str().unwrap();
        assert!(!json.contains(digest) && !table.contains(digest));
    }
    assert_eq!((&listed[0]["state"], &listed[1]["state"]), (&"active".into(), &"revoked".into()));
    assert_eq!(listed[1]["revokedAt"], grants.grant(1)["revokedAt"]);
}

#[test]
fn a_grants_file_that_is_not_there_is_not_an_empty_one() {
    let grants = Grants::new();
    let bearer = grants.issued(&RUNTIME, "bearer");
    fs::remove_file(grants.path()).unwrap();
    grants.credentials("list", &[]).run().refused(66, "grants.json");
    grants.verify(&bearer).refused(66, "grants.json");
}

#[test]
fn a_bearer_is_verified_from_standard_input_and_never_repeated() {
    let grants = Grants::new();
    let bearer = fs::read_to_string(grants.issued(&RUNTIME, "bearer")).unwrap();
    let from_input =
        |text: &str| grants.credentials("verify", &["--json"]).input(text.as_bytes()).run();
    for text in [bearer.as_str(), bearer.trim_end()] {
        assert_eq!(object(&from_input(text).ok())["principal"], "commands@north-1");
    }

    // Another secret, another id, and what is none at all.
    let forged = format!("{}{}", &bearer[..22], "0".repeat(32));
    let unknown = format!("scnb_{}{}", "0".repeat(16), &bearer[21..]);
    for (text, reason) in
        [(&forged, "the bearer's secret is not that of its grant"), (&unknown, "no grant has")]
    {
        let done = from_input(text);
        assert_eq!(done.code, 77, "{done:?}");
        let verdict = object(&done.out);
        assert_eq!(verdict["state"], "unknown");
        assert!(verdict["reason"].as_str().unwrap().contains(reason), "{verdict}");
        assert!(!done.out.contains(&text.trim_end()[22..]), "{done:?}");
    }
    let secret = "the-secret".repeat(5);
    for wrong in [&secret, &format!(" {bearer}"), &format!("{bearer}\n"), "", "\u{e9}"] {
        let done = from_input(wrong);
        done.refused(65, "not of the form");
        assert!(
            !done.err.contains("the-secret") && !done.err.contains(&bearer[22..54]),
            "{done:?}"
        );
    }
    grants.verify("/no/such/file").refused(66, "/no/such/file");
}

/// The texts of a manifest's `stringData`, read as YAML reads a block: each line without the indent
/// of the first.
fn string_data(manifest: &str) -> Vec<(String, String)> {
    let (_, data) = manifest.split_once("\nstringData:\n").unwrap();
    let mut files: Vec<(String, String)> = Vec::new();
    for line in data.lines() {
        if let Some(text) = line.strip_prefix("    ") {
            let (_, file) = files.last_mut().unwrap();
            file.push_str(text);
            file.push('\n');
        } else {
            let name = line.strip_prefix("  ").unwrap().strip_suffix(": |").unwrap();
            files.push((name.to_owned(), String::new()));
        }
    }
    files
}

#[test]
fn the_secret_of_a_cluster_holds_the_new_state_of_the_file_and_no_bearer() {
    let grants = Grants::new();
    let out = grants.folder.path().join("bearer").display().to_string();
    let cluster = ["--secret", "--namespace", "pharos"];
    let issued = grants.issue(&[&RUNTIME[..], &["--out", &out], &cluster].concat()).ok();
    let bearer = fs::read_to_string(&out).unwrap();
    let secret = bearer.trim_end().split_once('.').unwrap().1.to_owned();
    let revoked = [&["--scope", "commands", "--site", "north-1"][..], &cluster].concat();
    let states = [
        (issued, grants.text()),
        (grants.credentials("revoke", &revoked).run().ok(), grants.text()),
        (grants.credentials("list", &cluster).run().ok(), grants.text()),
    ];
    assert_ne!(states[0].1, states[1].1);
    for (manifest, text) in states {
        let head = "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: site-api-grants\n  \
                    namespace: \"pharos\"\ntype: Opaque\nstringData:\n";
        assert!(manifest.starts_with(head), "{manifest}");
        assert_eq!(string_data(&manifest), [("grants.json".to_owned(), text)]);
        assert!(!manifest.contains(&secret), "{manifest}");
    }
    let json = grants.credentials("list", &["--secret", "--json"]).run().ok();
    let json = object(&json);
    assert_eq!(json["stringData"]["grants.json"], grants.text());
    assert_eq!(json["metadata"], serde_json::json!({"name": "site-api-grants"}));
}

#[test]
fn a_bearer_is_not_printed_beside_a_secret() {
    let grants = Grants::new();
    grants.issue(&[&RUNTIME[..], &["--secret"]].concat()).refused(64, "--out");
    grants.issue(&[&RUNTIME[..], &["--namespace", "pharos"]].concat()).refused(64, "--secret");
    assert_eq!(files(grants.folder.path()), [""; 0]);
}

#[test]
fn an_issued_bearer_is_one_object_with_its_grant() {
    let grants = Grants::new();
    let printed = object(&grants.issue(&[&RUNTIME[..], &["--json"]].concat()).ok());
    let id = printed["bearer"].as_str().unwrap()[5..21].to_owned();
    assert_eq!((&printed["id"], &grants.grant(0)["id"]), (&id.clone().into(), &id.into()));
    assert_eq!(printed["state"], "active");

    let out = grants.folder.path().join("bearer").display().to_string();
    let kept = grants.issue(&[&AGENT[..], &["--out", &out, "--json"]].concat()).ok();
    assert_eq!(object(&kept)["bearerFile"], out.as_str());
    assert!(object(&kept).get("bearer").is_none());
}
