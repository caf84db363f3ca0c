//! `site-admin credentials`: bearers, handed over once.

use std::{
    fs,
    io::{Read, Write},
    time::Duration,
};

use serde_json::Value;
use test_support::{DatabaseUrls, TestDatabase, TestSite, eventually};

use crate::support::{Grants, RUNTIME, admin, files, full, mode, unread};

#[test]
fn a_bearer_is_printed_once_and_its_secret_is_in_no_file() {
    let grants = Grants::new();
    let done = grants.issue(&RUNTIME);
    assert!(done.err.contains("commands@north-1 until "), "{done:?}");
    let bearer = done.ok();
    let bearer = bearer.strip_suffix('\n').unwrap();
    let (id, secret) = bearer.strip_prefix("scnb_").unwrap().split_once('.').unwrap();
    assert_eq!(mode(&grants.path()), 0o600);
    for file in files(grants.folder.path()) {
        let text = fs::read_to_string(grants.folder.path().join(file)).unwrap();
        assert!(!text.contains(secret), "{text}");
    }
    let file: Value = serde_json::from_str(&grants.text()).unwrap();
    assert_eq!(file["grants"][0]["id"], id);
    assert_eq!(file["grants"][0]["environment"], "slurm");
}

#[test]
fn the_message_beside_the_bearer_does_not_repeat_it() {
    let done = Grants::new().issue(&RUNTIME);
    let (_, secret) = done.out.trim().split_once('.').unwrap();
    assert!(!done.err.contains(secret), "{done:?}");
}

#[test]
fn a_bearer_that_goes_to_a_file_is_in_no_other_place() {
    let grants = Grants::new();
    let out = grants.folder.path().join("bearer");
    let done = grants.issue(&[&RUNTIME[..], &["--out", out.to_str().unwrap()]].concat());
    assert!(done.err.contains("commands@north-1 until "), "{done:?}");
    let bearer = fs::read_to_string(&out).unwrap();
    let (id, secret) = bearer.strip_prefix("scnb_").unwrap().split_once('.').unwrap();
    assert_eq!(mode(&out), 0o600);
    assert!(secret.ends_with('\n'), "a line");
    assert!(!done.err.contains(secret.trim()), "{done:?}");
    assert_eq!(done.ok(), "");
    let file: Value = serde_json::from_str(&grants.text()).unwrap();
    assert_eq!(file["grants"][0]["id"], id);
}

#[test]
fn a_bearer_does_not_go_to_the_place_of_its_own_grant() {
    let grants = Grants::new();
    let path = grants.path().display().to_string();
    grants.issue(&[&RUNTIME[..], &["--out", &path]].concat()).refused(73, &path);
    is_as_before(&grants);
    let lock = format!("{path}.lock");
    let other = ["--scope", "ssh-access", "--site", "north-1", "--out", &lock];
    grants.issue(&other).refused(73, &lock);
}

/// Nothing is at the path of the grants, and the principal gets its bearer at the next try.
#[track_caller]
fn is_as_before(grants: &Grants) {
    assert!(!grants.path().exists());
    assert!(grants.issue(&RUNTIME).ok().starts_with("scnb_"));
}

#[test]
fn a_bearer_that_could_not_be_printed_was_not_issued() {
    let grants = Grants::new();
    let done = grants.command(&RUNTIME).output(full()).run();
    done.refused(74, "standard output: No space left on device");
    is_as_before(&grants);

    let grants = Grants::new();
    let done = grants.command(&RUNTIME).output(unread()).run();
    done.refused(74, "standard output: Broken pipe");
    is_as_before(&grants);
}

#[test]
fn a_bearer_whose_file_could_not_be_made_was_not_issued() {
    for (existing, out) in [("bearer", "bearer"), ("other", "none/bearer"), ("file", "file/x")] {
        let grants = Grants::new();
        let existing = grants.folder.path().join(existing);
        fs::write(&existing, "mine").unwrap();
        let out = grants.folder.path().join(out).display().to_string();
        grants.issue(&[&RUNTIME[..], &["--out", &out]].concat()).refused(73, &out);
        assert_eq!(fs::read_to_string(&existing).unwrap(), "mine");
        is_as_before(&grants);
    }
}

#[test]
fn a_bearer_without_a_grant_is_in_no_file() {
    let grants = Grants::new();
    let out = grants.folder.path().join("bearer").display().to_string();
    let with_out = [&RUNTIME[..], &["--out", &out]].concat();
    grants.issue(&RUNTIME).ok();
    grants.issue(&with_out).refused(65, "has an active grant already");
    assert_eq!(files(grants.folder.path()), ["grants.json", "grants.json.lock"]);

    // The bearer has less than 512 bytes, the file of five grants more than 1,024.
    let grants = Grants::new();
    for site in ["a", "b", "c", "d"] {
        grants.issue(&["--scope", "ssh-access", "--site", site]).ok();
    }
    let before = grants.text();
    grants.on_a_full_disk(&with_out).refused(73, "grants.json");
    assert_eq!(grants.text(), before);
    assert_eq!(files(grants.folder.path()), ["grants.json", "grants.json.lock"]);
}

/// The pipe is full, so that the program stands at its printing, the new grants file ready. Then
/// something else comes to the place of that file.
#[tokio::test]
async fn a_bearer_that_was_printed_in_vain_is_said_to_be_invalid() {
    let grants = Grants::new();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b'x'; 64 * 1024]).unwrap();
    let command = grants.command(&RUNTIME).output(writer);
    let run = std::thread::spawn(move || command.run());
    let folder = grants.folder.path().to_owned();
    eventually(Duration::from_secs(30), "the new grants file", async || {
        files(&folder).iter().any(|file| file.starts_with(".tmp")).then_some(())
    })
    .await;
    fs::write(grants.path(), "mine").unwrap();
    let mut printed = String::new();
    reader.read_to_string(&mut printed).unwrap();
    assert!(printed.contains("scnb_"), "it was printed");
    let done = run.join().unwrap();
    done.refused(73, "the bearer that was handed over is not valid");
    assert_eq!(grants.text(), "mine");
}

#[test]
fn a_second_active_bearer_of_a_principal_is_refused() {
    let grants = Grants::new();
    grants.issue(&RUNTIME).ok();
    let before = grants.text();
    let done = grants.issue(&RUNTIME);
    done.refused(65, "commands@north-1 has an active grant already");
    // The principal is the Site's, whatever the environment.
    let k8s = ["--scope", "commands", "--site", "north-1", "--environment", "k8s"];
    grants.issue(&k8s).refused(65, "has an active grant already");
    assert_eq!(grants.text(), before);
    grants.issue(&["--scope", "ssh-access", "--site", "north-1"]).ok();
    grants.issue(&["--scope", "ssh-access", "--site", "south-1"]).ok();
}

#[test]
fn a_scope_with_the_wrong_environment_is_refused() {
    let grants = Grants::new();
    let commands = ["--scope", "commands", "--site", "north-1"];
    grants.issue(&commands).refused(65, "--scope commands needs --environment");
    let agent = ["--scope", "ssh-access", "--site", "north-1", "--environment", "k8s"];
    grants.issue(&agent).refused(65, "--scope ssh-access has no --environment");
    assert_eq!(files(grants.folder.path()), [""; 0]);
}

#[test]
fn an_invalid_grants_file_is_refused_and_kept() {
    let grants = Grants::new();
    for (text, mistake) in [
        ("", "must be a JSON object"),
        ("{}", "grants: is missing"),
        (r#"{"version": 1, "grants": [{}]}"#, "grants[0].digest: is missing"),
    ] {
        fs::write(grants.path(), text).unwrap();
        grants.issue(&RUNTIME).refused(65, mistake);
        assert_eq!(grants.text(), text);
    }
}

#[test]
fn a_grants_file_that_can_not_be_made_is_refused() {
    let grants = Grants::new();
    let nowhere = grants.folder.path().join("none/grants.json").display().to_string();
    let done = admin(&[&["credentials", "issue", "--grants", &nowhere], &RUNTIME[..]].concat());
    done.run().refused(73, "none");
    fs::create_dir(grants.path()).unwrap();
    grants.issue(&RUNTIME).refused(73, "grants.json");
}

#[test]
fn of_many_that_issue_at_once_one_succeeds() {
    let grants = Grants::new();
    let runs: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8).map(|_| scope.spawn(|| grants.issue(&RUNTIME))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let mut codes: Vec<_> = runs.iter().map(|done| done.code).collect();
    codes.sort();
    assert_eq!(codes, [0, 65, 65, 65, 65, 65, 65, 65]);
    let file: Value = serde_json::from_str(&grants.text()).unwrap();
    assert_eq!(file["grants"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn site_api_starts_with_the_file_and_the_certificate_that_were_issued() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let urls = DatabaseUrls {
        api: database.url("site_coordination_api"),
        producer: database.url("site_coordination_producer"),
    };
    let site = TestSite::set_up(folder.path(), "north-1", "slurm", urls).unwrap();
    let roots = site_client::roots_from_pem_file(&site.file("tls/ca.crt")).unwrap();
    let token = site_client::TokenFile::open(site.file("bearer")).await.unwrap();
    let _process = site.start_site_api().await.unwrap();
    let origin = site_client::Origin::parse(&site.origin()).unwrap();
    let client = site_client::SiteClient::new(origin, roots, token, Default::default());
    let request = site_client::PollRequest {
        writer: site_client::Writer::FIRST,
        after: 0,
        after_digest: None,
        cancel_rev: 0,
        limit: 1,
        wait: std::time::Duration::ZERO,
    };
    assert_eq!(client.poll(&request).await.unwrap().last_seq, 0);
}
