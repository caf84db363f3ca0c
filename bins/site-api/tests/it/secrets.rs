//! Whatever happens, no secret and no body is told to anybody: not in a log at any level, not in a
//! metric, an alarm or a problem.

mod cluster;
mod whole_run;

use test_support::Process;

use crate::support::{Answer, Api, CASES, Gate, LONG, Place, Request, plain};

const DATABASE: &str = "SITE_COORDINATION_DATABASE_URL";

/// A bearer that nobody issued and that its bearer may still need elsewhere.
const STRANGER: &str = "scnb_0123456789abcdef.vwxyz0123456789abcdefghjkmnpqrst";
const COMMAND: &str = "the-secret-of-the-command";
const RESULT: &str = "the-secret-of-the-result";
const BROKEN: &str = "the-secret-of-a-broken-body";

/// What was said to whom, and what must not be in it.
#[derive(Default)]
struct Told {
    places: Vec<(String, String)>,
    secrets: Vec<String>,
}

impl Told {
    fn process(&mut self, process: &Process) {
        let lines = process.lines().into_iter().map(|line| ("a log".to_owned(), line.text));
        self.places.extend(lines);
    }

    fn answer(&mut self, to: &str, answer: &Answer) {
        let text = format!("{answer:?} {}", answer.text());
        self.places.push((format!("the answer to {to}"), text));
    }

    fn holds_no_secret(&self) {
        assert!(self.places.len() > 30, "{} places are too few", self.places.len());
        for (place, text) in &self.places {
            for secret in &self.secrets {
                assert!(!text.contains(secret), "{place} tells {secret}: {text}");
            }
        }
    }
}

fn password(url: &str) -> String {
    url.split_once('@').unwrap().0.rsplit_once(':').unwrap().1.to_owned()
}

/// The part of a bearer that is a secret.
fn secret(bearer: &str) -> String {
    bearer.split_once('.').unwrap().1.to_owned()
}

#[tokio::test]
async fn nobody_is_told_a_secret_or_a_body() {
    let place = Place::prepare().await;
    let other_site =
        place.issue(&["--scope", "commands", "--site", "south-1", "--environment", "slurm"]);
    let agent = place.issue(&["--scope", "ssh-access", "--site", "north-1"]);
    let ids = place.enqueue(&[&format!("\"{COMMAND}\""), "{}"]);
    let url = place.database.url("site_coordination_api");
    let mut told = Told::default();
    let jwt = "eyJhbGciOiJub25lIn0.eyJzZWNyZXQiOjF9.c2lnbmVk";
    let bearers = [&place.site.bearer().unwrap(), &other_site, &agent, STRANGER];
    told.secrets.extend(bearers.map(secret));
    told.secrets.extend([jwt, COMMAND, RESULT, BROKEN].map(str::to_owned));
    told.secrets.push(password(&url));

    let mut gate = Gate::open_before(&url);
    let mut command = place.command();
    command.env(DATABASE, gate.url(&url)).env("SITE_API_LOG", "trace");
    let api = place.start_by(command).await;

    for case in CASES {
        for token in bearers.iter().copied().chain([jwt, "", &format!("{STRANGER} {STRANGER}")]) {
            let request = case.idle_request(&ids[1]).bearer(token);
            let answer = api.send(&request).await;
            // A page holds the commands: that is what it is for.
            if answer.status != 200 {
                told.answer(case.pattern, &answer);
            }
        }
    }
    for body in [
        format!(r#"{{"outcome":"succeeded","output":"{BROKEN}"#),
        format!(r#"{{"outcome":"{BROKEN}","detail":["{BROKEN}"],"output":"{BROKEN}"}}"#),
        format!(r#"{{"outcome":"failed","detail":"{RESULT}"}}"#),
        format!(r#"{{"outcome":"failed","detail":"{RESULT}"}}"#),
        format!(r#"{{"outcome":"failed","detail":"another {BROKEN}"}}"#),
    ] {
        told.answer("a result", &api.send(&api.result(&ids[0], body.as_bytes())).await);
    }
    gate.shut().await;
    for request in [api.poll("after=0"), api.result(&ids[1], b"{\"outcome\":\"failed\"}")] {
        told.answer("a request in an outage", &api.send(&request).await);
    }
    for path in ["/metrics", "/alarms"] {
        told.answer(path, &plain(api.admin, &Request::new("GET", path)).await);
    }
    told.process(&api.process);

    let wrong = url.replace(&password(&url), "the-wrong-password");
    told.secrets.push("the-wrong-password".to_owned());
    for url in [wrong, format!("{url}&password=the-wrong-password"), url.replace('@', "")] {
        let mut command = api.place.command();
        command.env(DATABASE, url).env("SITE_API_LOG", "trace");
        let refused = Process::start(command).unwrap();
        refused.wait_exit(LONG).await.unwrap();
        told.process(&refused);
    }
    told.holds_no_secret();
}

#[tokio::test]
async fn a_search_that_would_find_something_finds_it() {
    let (api, ids) = Api::with_commands(1).await;
    let mut told = Told { secrets: vec![ids[0].clone()], ..Told::default() };
    told.places = vec![Default::default(); 31];
    told.holds_no_secret();
    told.answer("a poll", &api.send(&api.poll("after=0")).await);
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| told.holds_no_secret()));
    assert!(found.is_err());
}
