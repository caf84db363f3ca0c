//! An accepted Run as those see it who may read it.

use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::support::{
    ADMISSION, Answer, Api, Case, Cluster, OURS, Place, RUN, Request, STRANGER, changed,
    run_document,
};

/// A document whose material nobody would print so.
fn with_odd_material() -> String {
    let document = run_document(RUN).to_string();
    let odd = document.replace(r#"{"image":"train:3"}"#, MATERIAL);
    assert_ne!(odd, document);
    odd
}

const MATERIAL: &str = "{\"weight\":  1.50,\n \"image\": \"train\\u003a3\", \"image\": [ ]}";

async fn with_run() -> Api {
    let place = Place::prepare().await;
    place.accept(&with_odd_material());
    place.start_with_authority().await
}

fn tag(answer: &Answer) -> String {
    let tag = answer.header("etag").unwrap();
    let inner = tag.strip_prefix("W/\"").and_then(|tag| tag.strip_suffix('"')).unwrap();
    assert!(inner.len() == 64 && inner.bytes().all(|b| b.is_ascii_hexdigit()), "{tag}");
    tag.to_owned()
}

/// What is left of a problem that belongs to every request of its kind.
fn without_id(answer: &Answer) -> Value {
    answer.problem();
    let mut body = answer.json();
    body.as_object_mut().unwrap().remove("requestId").unwrap();
    body
}

async fn read(api: &Api, request: &Request) -> (String, Value) {
    let answer = api.send(request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    (tag(&answer), answer.json()["run"].clone())
}

/// A time of a table, as the wire spells it.
async fn time(sql: &Client, column: &str, table: &str) -> String {
    let time = format!(
        "SELECT to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')
           FROM execution_core.{table} WHERE run_id = $1"
    );
    sql.query_one(&time, &[&RUN]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_run_is_shown_whole_and_its_material_to_the_byte() {
    let api = with_run().await;
    let answer = api.send(&api.read_run(RUN)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.text().contains(&format!("\"material\":{MATERIAL}")), "{}", answer.text());
    let body: site_protocol::Execution = serde_json::from_slice(&answer.body).unwrap();
    assert!(body.server_time >= body.run.accepted_at);
    let sql = api.sql().await;
    let shown = answer.json();
    let accepted = time(&sql, "accepted_at", "run").await;
    assert_eq!(body.run.accepted_at, accepted.parse::<chrono::DateTime<chrono::Utc>>().unwrap());
    let mut run = shown["run"].clone();
    run.as_object_mut().unwrap().remove("material").unwrap();
    assert_eq!(
        run,
        json!({
            "runId": RUN,
            "projectId": "project-1",
            "memberId": "member-1",
            "environment": "slurm",
            "state": "accepted",
            "acceptedAt": shown["run"]["acceptedAt"],
            "deadline": "2999-01-01T00:00:00Z",
            "repository": {
                "instance": "gitlab", "projectId": 4711, "path": "research/climate",
                "ref": "main", "commit": "0123456789abcdef0123456789abcdef01234567"
            },
            "attempts": [],
        })
    );
}

#[tokio::test]
async fn the_tag_is_another_one_as_soon_as_anything_of_the_run_is() {
    let api = with_run().await;
    let (first, _) = read(&api, &api.read_run(RUN)).await;
    assert_eq!(read(&api, &api.read_run(RUN)).await.0, first, "the time alone changes nothing");
    api.place.submit(RUN, 1);
    let (second, run) = read(&api, &api.read_run(RUN)).await;
    assert_ne!(second, first);
    let submitted = run["attempts"][0]["submittedAt"].clone();
    assert_eq!(
        run["attempts"],
        json!([{ "number": 1, "state": "submitted", "submittedAt": submitted }])
    );
    let over = "UPDATE execution_core.attempt SET final_at = '2030-01-01T00:00:00Z'";
    api.sql().await.batch_execute(over).await.unwrap();
    let (third, run) = read(&api, &api.read_run(RUN)).await;
    assert!(third != first && third != second);
    let attempt = &run["attempts"][0];
    assert_eq!(
        (&attempt["state"], &attempt["finalAt"]),
        (&json!("final"), &json!("2030-01-01T00:00:00Z"))
    );
    api.place.control(&["runs", "cancel", RUN]);
    let (fourth, run) = read(&api, &api.read_run(RUN)).await;
    assert!(![first, second, third].contains(&fourth));
    assert_eq!(run["state"], "cancelled");
    assert!(run["cancelledAt"].is_string());
}

#[tokio::test]
async fn who_has_the_run_as_it_is_gets_no_body() {
    let api = with_run().await;
    let (tag, _) = read(&api, &api.read_run(RUN)).await;
    let with = |value: &str| api.read_run(RUN).header("if-none-match", value);
    for list in [&tag, "*", &tag[2..], &format!("\"x\", {tag}")] {
        let answer = api.send(&with(list)).await;
        assert_eq!(answer.status, 304, "{list}: {answer:?}");
        assert_eq!(answer.header("etag"), Some(tag.as_str()));
        assert_eq!(answer.header("content-type"), None);
        assert!(answer.body.is_empty());
    }
    for list in ["\"x\"", &tag[3..67], ""] {
        assert_eq!(api.send(&with(list)).await.status, 200, "{list}");
    }
    api.place.submit(RUN, 1);
    assert_eq!(api.send(&with(&tag)).await.status, 200);
    // A tag is no way around who may read.
    let nobody = with("*").without("authorization");
    assert_eq!(api.send(&nobody).await.code(), "unauthenticated");
    let absent = api.read_run("run-8").header("if-none-match", "*");
    assert_eq!(api.send(&absent).await.code(), "not_found");
}

#[tokio::test]
async fn a_run_of_another_place_looks_like_one_that_does_not_exist() {
    let place = Place::prepare().await;
    let elsewhere = changed(run_document("run-elsewhere"), "/site", "south-1");
    let other = changed(run_document("run-other"), "/environment", "k8s");
    place.accept(&elsewhere.to_string());
    place.accept(&other.to_string());
    place.accept(&run_document(RUN).to_string());
    let api = place.start_with_authority().await;
    let absent = without_id(&api.send(&api.read_run("run-absent")).await);
    assert_eq!(absent["code"], "not_found");
    for run in ["run-elsewhere", "run-other", "RUN-7", "-", "%72un-7", &"x".repeat(129)] {
        assert_eq!(without_id(&api.send(&api.read_run(run)).await), absent, "{run}");
        let asked = api.send(&api.may_execute(run, 1)).await;
        assert_eq!(without_id(&asked), absent, "{run}");
    }
    assert_eq!(api.send(&api.read_run(RUN)).await.status, 200);
}

#[tokio::test]
async fn an_admission_reads_the_runs_of_its_environment_and_may_do_nothing_else() {
    let place = Place::prepare().await;
    place.accept_and_submit(RUN);
    place.retain();
    place.accept(&changed(run_document("run-other"), "/environment", "k8s").to_string());
    let ids = place.enqueue(&["{}"]);
    let cluster = Cluster::beside(&place).await;
    let mut command = place.command();
    place.authority(&mut command);
    cluster.settings(&mut command);
    let api = place.start_by(command).await;
    let by = |request: Request, account| {
        let token = cluster.token_of(account, OURS);
        request.without("authorization").bearer(&token)
    };
    let (tag, run) = read(&api, &by(api.read_run(RUN), ADMISSION)).await;
    assert_eq!((tag, run), read(&api, &api.read_run(RUN)).await, "as a Runtime sees it");
    let other = by(api.read_run("run-other"), ADMISSION);
    assert_eq!(api.send(&other).await.code(), "not_found");
    let stranger = by(api.read_run(RUN), STRANGER);
    assert_eq!(api.send(&stranger).await.code(), "unauthenticated");

    let asked = by(api.may_execute(RUN, 1), ADMISSION);
    assert_eq!(api.send(&asked).await.code(), "forbidden");
    let reads = |case: &Case| case.pattern == site_protocol::paths::EXECUTION;
    for case in Case::granted().filter(|case| !reads(case)) {
        let answer = api.send(&by(case.request(&ids[0]), ADMISSION)).await;
        assert_eq!(answer.code(), "forbidden", "{case:?}");
    }
}

#[tokio::test]
async fn a_run_of_a_megabyte_is_read() {
    let place = Place::prepare().await;
    let large = changed(run_document(RUN), "/material", "x".repeat(1_048_574));
    place.accept(&large.to_string());
    let api = place.start_with_authority().await;
    let (_, run) = read(&api, &api.read_run(RUN)).await;
    assert_eq!(run["material"].as_str().unwrap().len(), 1_048_574);
}
