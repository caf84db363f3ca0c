//! All that is needed to review tokens, or nothing: anything between refuses the start.

use std::fs;

use serde_json::json;
use test_support::{TokenRequest, config_map, manifest};

use crate::{
    start::wrong_settings,
    support::{ADMISSION, Api, Cluster, OURS, Place, RUNTIME, Request, subject},
};

const RUNTIMES: &str = "SITE_API_GRANTS_JSON";
const ADMISSIONS: &str = "SITE_API_AUTHORITY_GRANTS_JSON";
const URL: &str = "SITE_API_TOKEN_REVIEW_URL";
const CA: &str = "SITE_API_TOKEN_REVIEW_CA_FILE";
const TOKEN: &str = "SITE_API_TOKEN_REVIEW_TOKEN_FILE";

/// A place with a cluster beside it.
async fn place() -> (Place, Cluster) {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    (place, cluster)
}

#[tokio::test]
async fn what_is_missing_is_named_and_a_listener_without_all_of_it_starts() {
    let (place, cluster) = place().await;
    for (removed, named) in [
        (vec![URL], vec![URL]),
        (vec![CA], vec![CA]),
        (vec![TOKEN], vec![TOKEN]),
        (vec![URL, CA, TOKEN], vec![URL, CA, TOKEN]),
        (vec![RUNTIMES, ADMISSIONS], vec![RUNTIMES]),
        (vec![RUNTIMES, ADMISSIONS, CA], vec![RUNTIMES, CA]),
        (vec![RUNTIMES, ADMISSIONS, CA, TOKEN], vec![RUNTIMES, CA, TOKEN]),
        (vec![RUNTIMES, URL, CA, TOKEN], vec![URL, CA, TOKEN]),
        (vec![ADMISSIONS, URL], vec![URL]),
    ] {
        let mut command = place.command();
        cluster.settings(&mut command);
        for name in &removed {
            command.env_remove(name);
        }
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, named, "without {removed:?}: {said}");
    }
    // They are paths themselves: there is no second place for them.
    for name in [CA, TOKEN] {
        let mut command = place.command();
        cluster.settings(&mut command);
        let file = place.site.file("kubernetes/ca.crt");
        command.env_remove(name).env(format!("{name}_FILE"), file);
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, [name], "{said}");
    }
    // One map is enough, and the settings that have a default need nobody.
    for removed in [RUNTIMES, ADMISSIONS] {
        let (place, cluster) = self::place().await;
        let mut command = place.command();
        cluster.settings(&mut command);
        command.env_remove(removed);
        place.start_by(command).await;
    }
    let mut command = place.command();
    command.env("SITE_API_RUNTIME_AUDIENCE", "other").env("SITE_API_TOKEN_REVIEWS", "8");
    place.start_by(command).await;
}

#[tokio::test]
async fn every_mistake_of_the_maps_is_named_under_its_setting() {
    let (place, cluster) = place().await;
    let (runtime, admission) = (subject(RUNTIME), subject(ADMISSION));
    let twice = format!(r#"{{"{runtime}":"k8s","{runtime}":"slurm"}}"#);
    for (runtimes, admissions, named, reasons) in [
        ("", "{}", vec![RUNTIMES], vec!["is empty"]),
        ("{", "{}", vec![RUNTIMES], vec!["must be a JSON object"]),
        ("[]", "1", vec![RUNTIMES, ADMISSIONS], vec!["must be a JSON object"]),
        (
            r#"{"runtime-k8s":"k8s"}"#,
            "{}",
            vec![RUNTIMES],
            vec!["system:serviceaccount:<namespace>:<name>"],
        ),
        (
            &json!({ &runtime: "gpu", &admission: 1 }).to_string(),
            "{}",
            vec![RUNTIMES, RUNTIMES],
            vec![r#"must be "k8s" or "slurm""#],
        ),
        (&twice, "{}", vec![RUNTIMES], vec!["more than once"]),
        (
            &json!({ &runtime: "k8s" }).to_string(),
            &json!({ &runtime: "k8s" }).to_string(),
            vec![ADMISSIONS],
            vec!["is granted as a Runtime already"],
        ),
    ] {
        let mut command = place.command();
        cluster.settings(&mut command);
        command.env(RUNTIMES, runtimes).env(ADMISSIONS, admissions);
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, named, "{runtimes} {admissions}: {said}");
        assert!(reasons.iter().all(|reason| said.contains(reason)), "{runtimes}: {said}");
    }
}

#[tokio::test]
async fn what_the_reviewer_needs_must_be_of_use_at_the_start() {
    let (place, cluster) = place().await;
    let file = |name: &str| place.site.file(name).display().to_string();
    fs::write(file("empty"), "").unwrap();
    fs::write(file("two-words"), "s3cret s3cret").unwrap();
    let missing = file("missing");
    for (name, value, reason) in [
        (URL, "https://kube/path".to_owned(), "a path is not allowed"),
        (URL, "http://kube".to_owned(), "the scheme must be https"),
        (URL, "kube".to_owned(), "not a URL"),
        (CA, missing.clone(), "missing: the CA file can't be read"),
        (CA, file("empty"), "holds no certificate"),
        (CA, String::new(), "is empty"),
        (TOKEN, missing, "missing: the token file can't be read"),
        (TOKEN, file("empty"), "the token file is empty"),
        (TOKEN, file("two-words"), "something else than one token"),
        ("SITE_API_RUNTIME_AUDIENCE", "site control".to_owned(), "visible ASCII"),
        ("SITE_API_RUNTIME_AUDIENCE", "a".repeat(254), "visible ASCII"),
        ("SITE_API_TOKEN_REVIEW_SECONDS", "11".to_owned(), "from 1 to 10"),
        ("SITE_API_TOKEN_REVIEWS", "2".to_owned(), "from 3 to 256"),
        ("SITE_API_TOKEN_REVIEW_CACHE_SECONDS", "11".to_owned(), "from 0 to 10"),
    ] {
        let mut command = place.command();
        cluster.settings(&mut command);
        command.env(name, &value);
        let (names, said) = wrong_settings(command).await;
        assert_eq!(names, [name], "{value}: {said}");
        assert!(said.contains(reason) && !said.contains("s3cret"), "{value}: {said}");
    }
}

#[tokio::test]
async fn every_wrong_setting_is_named_at_once() {
    let (place, cluster) = place().await;
    let mut command = place.command();
    cluster.settings(&mut command);
    command
        .env(RUNTIMES, "[]")
        .env(ADMISSIONS, r#"{"a":"k8s"}"#)
        .env(URL, "kube")
        .env(CA, place.site.file("missing"))
        .env(TOKEN, place.site.file("missing"))
        .env("SITE_API_LISTEN", "here");
    let (names, said) = wrong_settings(command).await;
    assert_eq!(names, ["SITE_API_LISTEN", RUNTIMES, ADMISSIONS, URL, CA, TOKEN], "{said}");
}

#[tokio::test]
async fn a_map_may_come_from_a_file_and_may_be_empty() {
    let (place, cluster) = place().await;
    let file = place.site.file("grants-map");
    fs::write(&file, format!("{}\n", json!({ subject(RUNTIME): "slurm" }))).unwrap();
    let mut command = place.command();
    cluster.settings(&mut command);
    command.env_remove(RUNTIMES).env(format!("{RUNTIMES}_FILE"), &file).env(ADMISSIONS, "{}");
    let api = place.start_by(command).await;
    assert_eq!(api.answer_to(&cluster.token()).await.status, 200);
}

#[tokio::test]
async fn the_map_of_the_manifest_is_a_good_one() {
    let manifest = manifest("site-api.yaml");
    let (_, value) = manifest.split_once(&format!("- name: {RUNTIMES}\n")).unwrap();
    let map = value.lines().next().unwrap().trim().strip_prefix("value: ").unwrap();
    let (place, cluster) = place().await;
    let mut command = place.command();
    cluster.settings(&mut command);
    command.env(RUNTIMES, map.trim_matches('\''));
    let api = place.start_by(command).await;
    let kube = &cluster.api;
    kube.create_account("pharos-site-runtime", "runtime-k8s");
    kube.create_pod("pharos-site-runtime", "runtime-k8s-0");
    let request = TokenRequest::new("pharos-site-runtime", "runtime-k8s", OURS);
    let token = kube.issue(request.pod("runtime-k8s-0"));
    assert_eq!(api.answer_to(&token).await.status, 200);
}

/// Which Site it serves, and what it answers at a path of SSH access to who brings no token.
async fn site_and_ssh(api: &Api) -> (String, u16) {
    let lines = api.process.lines();
    let line = lines.iter().find(|line| line.text.contains("\"site_api.listening\"")).unwrap();
    let line: serde_json::Value = serde_json::from_str(&line.text).unwrap();
    let changes = Request::new("GET", "/v1/site/ssh-access/changes?after=0");
    (line["site.id"].as_str().unwrap().to_owned(), api.send(&changes).await.status)
}

/// The manifest takes its Site from a ConfigMap that may be absent. A variable of the container itself
/// comes before it, so who does without names the Site there.
#[tokio::test]
async fn the_site_comes_from_the_configmap_or_from_whoever_does_without_it() {
    let place = Place::prepare().await;
    let mut command = place.command();
    command.envs(config_map(&manifest("ssh-access-settings.yaml")));
    command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
    let api = place.start_by(command).await;
    assert_eq!(site_and_ssh(&api).await, ("gpu-lab".to_owned(), 401));

    // Without the ConfigMap the optional key of the Secret may be there all the same.
    let place = Place::prepare().await;
    let mut command = place.command();
    command.env("SITE_API_SITE_ID", "lane-7");
    command.env("SSH_ACCESS_DATABASE_URL", place.database.url("ssh_access_api"));
    let api = place.start_by(command).await;
    assert_eq!(site_and_ssh(&api).await, ("lane-7".to_owned(), 404));

    // And who names none is refused.
    let place = Place::prepare().await;
    let mut command = place.command();
    command.env_remove("SITE_API_SITE_ID");
    assert_eq!(wrong_settings(command).await.0, ["SITE_API_SITE_ID"]);
}
