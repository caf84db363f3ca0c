//! The grants file changes while the process runs.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use test_support::{Projected, eventually};

use crate::support::{Api, LONG, Place, Request, dump, plain};

/// A revocation works within about two seconds; the machine may do something else as well.
const SOON: Duration = Duration::from_secs(10);

/// Has the file at `path` hold `text` from a moment on.
type Put = fn(path: &Path, text: &str);

/// The ways in which a file is changed.
const WAYS: [(&str, Put); 3] =
    [("in place", in_place), ("by a rename", by_rename), ("as a projected Secret", projected)];

fn in_place(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

fn by_rename(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

fn projected(path: &Path, text: &str) {
    let volume = Projected::at(path.parent().unwrap()).unwrap();
    volume.swap(&[("grants.json", text)]).unwrap();
}

fn text(api: &Api) -> String {
    fs::read_to_string(api.place.site.file("grants.json")).unwrap()
}

/// The file's text with a change of its first grant.
fn changed(text: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut file: Value = serde_json::from_str(text).unwrap();
    change(&mut file["grants"][0]);
    file.to_string()
}

fn revoked(text: &str) -> String {
    changed(text, |grant| grant["revokedAt"] = json!("2026-01-02T00:00:00Z"))
}

/// How a poll that does not wait is answered now: the status, or the code of the problem.
async fn answer(api: &Api) -> String {
    let answer = api.send(&api.poll("after=0")).await;
    if answer.status == 200 { "200".to_owned() } else { answer.code() }
}

async fn answers(api: &Api, what: &str) {
    let what_for = format!("the answer {what}");
    eventually(LONG, &what_for, async || (answer(api).await == what).then_some(())).await;
}

/// The reason of the alarm about the file.
async fn alarm(api: &Api) -> Option<String> {
    let answer = plain(api.admin, &Request::new("GET", "/alarms")).await.json();
    let alarms = answer["alarms"].as_array().unwrap().clone();
    let alarm = alarms.iter().find(|alarm| alarm["name"] == "native_grants")?;
    Some(alarm["reason"].as_str().unwrap().to_owned())
}

async fn alarm_with(api: &Api, part: &str) {
    let what = format!("the alarm {part}");
    eventually(LONG, &what, async || {
        alarm(api).await.is_some_and(|reason| reason.contains(part)).then_some(())
    })
    .await;
}

async fn no_alarm(api: &Api) {
    eventually(LONG, "no alarm", async || alarm(api).await.is_none().then_some(())).await;
}

#[tokio::test]
async fn a_revocation_works_without_a_restart_however_the_file_is_changed() {
    let (api, _) = Api::with_commands(1).await;
    let path = api.place.site.file("grants.json");
    let good = text(&api);
    for (way, put) in WAYS {
        let changed = Instant::now();
        put(&path, &revoked(&good));
        answers(&api, "unauthenticated").await;
        assert!(changed.elapsed() < SOON, "{way} took {:?}", changed.elapsed());
        put(&path, &good);
        answers(&api, "200").await;
        assert_eq!(alarm(&api).await, None, "{way}");
    }
}

#[tokio::test]
async fn a_new_bearer_is_taken_up_and_the_old_one_refused() {
    let (api, _) = Api::with_commands(1).await;
    let old = api.poll("after=0");
    api.place.edit_grants(|grants| grants[0]["revokedAt"] = json!("2026-01-02T00:00:00Z"));
    api.place.site.issue_bearer("commands", "bearer").unwrap();
    answers(&api, "200").await;
    assert_eq!(api.send(&old).await.code(), "unauthenticated");
}

#[tokio::test]
async fn a_poll_that_waits_ends_with_its_grant_and_delivers_nothing_after_it() {
    for (end, code) in [("revoked", "unauthenticated"), ("deleted", "bearers_unavailable")] {
        let (api, _) = Api::with_commands(0).await;
        let poll = api.parked(api.poll("after=0&wait=25")).await;
        let path = api.place.site.file("grants.json");
        let began = Instant::now();
        if end == "revoked" {
            by_rename(&path, &revoked(&text(&api)));
        } else {
            fs::remove_file(&path).unwrap();
        }
        let answer = poll.await.unwrap();
        assert_eq!(answer.code(), code);
        assert!(began.elapsed() < SOON, "{end}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_command_after_the_revocation_reaches_no_poll_from_before_it() {
    let (api, _) = Api::with_commands(0).await;
    let poll = api.parked(api.poll("after=0&wait=25")).await;
    let path = api.place.site.file("grants.json");
    by_rename(&path, &revoked(&text(&api)));
    // No poll, which would release the one that waits.
    let other = api.result(&format!("cmd_{}", "0".repeat(32)), b"{\"outcome\":\"failed\"}");
    eventually(LONG, "the refusal", async || (api.send(&other).await.status == 401).then_some(()))
        .await;
    api.place.enqueue(&["{}"]);
    assert_eq!(poll.await.unwrap().code(), "unauthenticated");
}

#[tokio::test]
async fn a_poll_that_waits_ends_with_the_expiry_of_its_grant() {
    let place = Place::prepare().await;
    let soon = "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC' + interval '6 seconds',
                               'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')";
    let sql = place.database.superuser().await;
    let soon: String = sql.query_one(soon, &[]).await.unwrap().get(0);
    place.edit_grants(|grants| grants[0]["expiresAt"] = json!(soon));
    let api = place.start().await;
    let poll = api.parked(api.poll("after=0&wait=25")).await;
    let began = Instant::now();
    assert_eq!(poll.await.unwrap().code(), "unauthenticated");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_poll_that_waits_ends_when_its_grant_names_another_stream() {
    let (api, _) = Api::with_commands(0).await;
    let poll = api.parked(api.poll("after=0&wait=25")).await;
    let other = changed(&text(&api), |grant| grant["environment"] = json!("k8s"));
    by_rename(&api.place.site.file("grants.json"), &other);
    assert_eq!(poll.await.unwrap().code(), "unauthenticated");
    assert_eq!(answer(&api).await, "200");
}

#[tokio::test]
async fn a_poll_that_waits_does_not_notice_a_change_that_leaves_its_grant() {
    let (api, _) = Api::with_commands(0).await;
    let poll = api.parked(api.poll("after=0&wait=25")).await;
    let agent = api.place.issue(&["--scope", "ssh-access", "--site", "north-1"]);
    let known = api.poll("after=0").without("authorization").bearer(&agent);
    eventually(LONG, "the new grant", async || {
        (api.send(&known).await.code() == "forbidden").then_some(())
    })
    .await;
    assert!(!poll.is_finished());
    api.place.enqueue(&["{}"]);
    assert_eq!(poll.await.unwrap().json()["commands"][0]["seq"], 1);
}

#[tokio::test]
async fn a_result_whose_body_comes_after_the_revocation_is_not_stored() {
    let (api, ids) = Api::with_commands(1).await;
    let before = dump(&api.sql().await).await;
    let mut connection = api.wire.open().await;
    let request = api.result(&ids[0], b"{\"outcome\":\"failed\"}");
    let bytes = request.header("expect", "100-continue").bytes();
    connection.write(&bytes[..bytes.len() - 1]).await;
    connection.interim().await;
    by_rename(&api.place.site.file("grants.json"), &revoked(&text(&api)));
    assert_eq!(connection.answer().await.unwrap().code(), "unauthenticated");
    connection.write(b"}").await;
    assert_eq!(dump(&api.sql().await).await, before);
}

#[tokio::test]
async fn an_invalid_file_keeps_the_last_good_grants_for_their_time_and_no_longer() {
    let place = Place::prepare().await;
    let mut command = place.command();
    command.env("SITE_API_LAST_GOOD_GRANTS_SECONDS", "1");
    let api = place.start_by(command).await;
    let path = api.place.site.file("grants.json");
    let good = text(&api);
    let mut twice: Value = serde_json::from_str(&good).unwrap();
    let mut second = twice["grants"][0].clone();
    second["id"] = json!("0123456789abcdef");
    twice["grants"].as_array_mut().unwrap().push(second);
    let twice = twice.to_string();
    let large = format!("{good}{}", " ".repeat(1024 * 1024));
    let cases = [
        (&good.as_bytes()[..good.len() / 2], "must be a JSON object"),
        (b"", "must be a JSON object"),
        (b"{\"version\":1,\"grants\":[],\"\xff\":0}", "is not UTF-8"),
        (twice.as_bytes(), "commands@north-1 has an active grant already"),
        (large.as_bytes(), "has more than 1048576 bytes"),
    ];
    for (bytes, reason) in cases {
        let began = Instant::now();
        fs::write(&path, bytes).unwrap();
        answers(&api, "bearers_unavailable").await;
        assert!(began.elapsed() >= Duration::from_secs(1), "the last good grants stay for a while");
        alarm_with(&api, "; native bearers are unavailable").await;
        assert!(alarm(&api).await.unwrap().contains(reason), "{reason}");
        fs::write(&path, &good).unwrap();
        answers(&api, "200").await;
        no_alarm(&api).await;
    }
}

/// What no program running as root may be refused: the rest of what can't be read.
#[tokio::test]
async fn an_unreadable_file_keeps_the_last_good_grants() {
    let (api, _) = Api::with_commands(0).await;
    let path = api.place.site.file("grants.json");
    let good = text(&api);
    fs::remove_file(&path).unwrap();
    symlink("grants.json", &path).unwrap();
    alarm_with(&api, "can't be read: ").await;
    fs::remove_file(&path).unwrap();
    // The moment without a file may have been seen, so that nothing is in force; a rename has none.
    by_rename(&path, &good);
    answers(&api, "200").await;
    no_alarm(&api).await;
    let folder = path.with_extension("folder");
    fs::create_dir(&folder).unwrap();
    symlink(&folder, path.with_extension("link")).unwrap();
    fs::rename(path.with_extension("link"), &path).unwrap();
    alarm_with(&api, "can't be read: is a directory; the last good grants stay in force for 300 s")
        .await;
    assert_eq!(answer(&api).await, "200");
}

#[tokio::test]
async fn an_invalid_file_can_not_carry_a_revocation_away_for_longer_than_its_time() {
    let place = Place::prepare().await;
    let mut command = place.command();
    command.env("SITE_API_LAST_GOOD_GRANTS_SECONDS", "0");
    let api = place.start_by(command).await;
    let poll = api.parked(api.poll("after=0&wait=25")).await;
    fs::write(api.place.site.file("grants.json"), "{").unwrap();
    assert_eq!(poll.await.unwrap().code(), "bearers_unavailable");
}

#[tokio::test]
async fn a_deleted_file_makes_bearers_unavailable_until_there_is_one_again() {
    let (api, _) = Api::with_commands(0).await;
    let path = api.place.site.file("grants.json");
    let good = text(&api);
    fs::remove_file(&path).unwrap();
    answers(&api, "bearers_unavailable").await;
    alarm_with(&api, "grants.json: the file does not exist").await;
    in_place(&path, &good);
    answers(&api, "200").await;
    no_alarm(&api).await;
}

#[tokio::test]
async fn an_empty_list_denies_everybody_without_an_alarm() {
    let (api, _) = Api::with_commands(0).await;
    api.place.edit_grants(Vec::clear);
    answers(&api, "unauthenticated").await;
    assert_eq!(alarm(&api).await, None);
}

#[tokio::test]
async fn a_file_that_is_absent_at_the_start_is_taken_up_when_it_appears() {
    let place = Place::prepare().await;
    let (path, elsewhere) = (place.site.file("grants.json"), place.site.file("elsewhere"));
    fs::rename(&path, &elsewhere).unwrap();
    let api = place.start().await;
    assert_eq!(answer(&api).await, "bearers_unavailable");
    fs::rename(&elsewhere, &path).unwrap();
    answers(&api, "200").await;
    no_alarm(&api).await;
}

#[tokio::test]
async fn grants_that_appear_before_a_listener_without_a_site_are_refused_with_an_alarm() {
    let place = Place::prepare().await;
    let (path, elsewhere) = (place.site.file("grants.json"), place.site.file("elsewhere"));
    fs::rename(&path, &elsewhere).unwrap();
    let mut command = place.command();
    command.env_remove("SITE_API_SITE_ID");
    let api = place.start_by(command).await;
    let listening = api.process.lines();
    assert!(listening.iter().any(|line| line.text.contains("\"site.id\":\"default\"")));
    alarm_with(&api, "the file does not exist").await;
    fs::rename(&elsewhere, &path).unwrap();
    alarm_with(&api, "not taken up, as SITE_API_SITE_ID is not set").await;
    assert_eq!(answer(&api).await, "bearers_unavailable");
    fs::write(&path, "{").unwrap();
    answers(&api, "bearers_unavailable").await;
    fs::remove_file(&path).unwrap();
    alarm_with(&api, "the file does not exist").await;
}

/// An alarm that stays is told once, not at each look.
#[tokio::test]
async fn a_file_that_stays_invalid_is_told_once() {
    let (api, _) = Api::with_commands(0).await;
    fs::write(api.place.site.file("grants.json"), "{").unwrap();
    alarm_with(&api, "must be a JSON object").await;
    let began = Instant::now();
    eventually(LONG, "some looks more", async || {
        (began.elapsed() > Duration::from_secs(3)).then_some(())
    })
    .await;
    let lines = api.process.lines();
    let told = lines.iter().filter(|line| line.text.contains("\"alarm.raised\"")).count();
    assert_eq!(told, 1, "{lines:#?}");
}
