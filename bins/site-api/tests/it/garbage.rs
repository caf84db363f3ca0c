//! Garbage of every kind on every route: each is answered with a problem, or the connection ends;
//! nothing is changed, and the next caller is served.

mod bodies;
mod generator;
mod messages;

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::support::{Answer, Api, CASES, Caller, Case, Request, dump, plain, plain_bytes};
use generator::Generator;

/// A bearer that nobody issued.
const STRANGER: &str = "scnb_0123456789abcdef.vwxyz0123456789abcdefghjkmnpqrst";

/// How many mutated requests are sent, and how many pieces of garbage are under way at once.
const MUTATIONS: u64 = 600;
const AT_ONCE: usize = 24;

/// What may be said to one piece of garbage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A problem of the message itself: none that shows that it was taken for a request to the
    /// stream.
    Refusal,
    /// As well a problem of the stream: the garbage may be a request after all, one that is refused;
    /// a batch has such problems in it.
    RefusalOrNotDue,
    /// As well a success of a route that only reads: the garbage may be none after all.
    RefusalOrRead,
}

/// What is sent, with a name for the report.
struct Garbage {
    name: String,
    bytes: Vec<u8>,
    expect: Expect,
    /// Whether the end of the connection is not answer enough.
    answered: bool,
}

/// A Site whose stream has three commands without a result: one that is due, two that are not.
struct Target {
    api: Api,
    ids: Vec<String>,
}

impl Target {
    async fn start() -> Self {
        let (api, ids) = Api::with_authority(3).await;
        Self { api, ids }
    }

    /// Sends everything and checks each answer, and at the end that nothing has changed.
    async fn withstands(&self, garbage: impl Iterator<Item = Garbage>) {
        let sql = self.api.sql().await;
        let before = dump(&sql).await;
        let answers = send_all(garbage, async |garbage| {
            self.api.wire.send_bytes(&garbage.bytes, garbage.answered).await
        })
        .await;
        assert!(answers > 0, "the server answers nothing");
        assert_eq!(dump(&sql).await, before, "garbage has changed something");

        let page = self.api.send(&self.api.poll("after=0")).await.json();
        assert_eq!((&page["nextAfter"], &page["head"]["seq"]), (&json!(3), &json!(1)));
        unharmed(&self.api);
    }
}

/// Sends everything in a way and checks each answer; says how many there were.
async fn send_all(
    garbage: impl Iterator<Item = Garbage>,
    send: impl AsyncFn(&Garbage) -> Vec<Answer>,
) -> usize {
    let sent = stream::iter(garbage).map(async |garbage| {
        let answers = loop {
            let answers = send(&garbage).await;
            // Few outputs are read at once: then it was not looked at.
            if !answers.iter().any(|answer| answer.status == 503 && answer.code() == "overloaded") {
                break answers;
            }
        };
        assert!(!answers.is_empty() || !garbage.answered, "{}: no answer", garbage.name);
        for answer in &answers {
            assert!(allowed(answer, garbage.expect), "{}: {answer:?}", garbage.name);
        }
        answers.len()
    });
    sent.buffer_unordered(AT_ONCE).fold(0, async |all, count| all + count).await
}

/// The process runs, and nothing went wrong inside of it.
fn unharmed(api: &Api) {
    assert_eq!(api.process.exit(), None);
    let bad = |text: &str| text.contains("panicked") || text.contains("\"http.status\":500");
    let lines = api.process.lines();
    let bad: Vec<_> = lines.iter().filter(|line| bad(&line.text)).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

fn allowed(answer: &Answer, expect: Expect) -> bool {
    if answer.status < 400 {
        let read = expect == Expect::RefusalOrRead;
        let not_due = expect == Expect::RefusalOrNotDue && nothing_stored(answer);
        return answer.status == 200 && (read || not_due);
    }
    let problem = answer.problem();
    // Each of its conflicts, and nothing else, is a 409.
    let of_the_stream = problem.status == 409;
    (400..500).contains(&problem.status) && !(of_the_stream && expect == Expect::Refusal)
}

/// Whether an answer is that to a batch and tells of each result that it was not stored.
fn nothing_stored(answer: &Answer) -> bool {
    answer.json()["results"].as_array().is_some_and(|results| {
        results.iter().all(|result| result["problem"]["source"] == "site-api")
    })
}

#[tokio::test]
async fn bodies_that_are_no_result_change_nothing() {
    let target = Target::start().await;
    let bearer = target.api.bearer();
    let mut garbage = Vec::new();
    for case in Case::with_body() {
        for (name, body) in bodies::all() {
            // Of the due command, so that it would be stored if it were taken for a result.
            let request = case.request(&target.ids[0]).body(&body);
            for (whose, request) in
                [("nobody's", request.clone()), ("a Runtime's", request.bearer(&bearer))]
            {
                let name = format!("{whose} {name} at {}", case.pattern);
                let (bytes, expect) = (request.bytes(), Expect::Refusal);
                garbage.push(Garbage { name, bytes, expect, answered: true });
            }
        }
    }
    target.withstands(garbage.into_iter()).await;
}

#[tokio::test]
async fn messages_that_are_no_http_change_nothing() {
    let target = Target::start().await;
    let bearer = target.api.bearer();
    let mut garbage = Vec::new();
    for case in CASES {
        for token in [&bearer, "scnb_none", STRANGER] {
            let stranger = case.caller != Caller::Anyone && token != bearer;
            let of = |request: Request| messages::all(&case, &request.bearer(token));
            // Of the due command, so that it would change something if it were taken for a request;
            // but what may rightly be taken for one can't.
            let (due, idle) = (case.request(&target.ids[0]), case.idle_request(&target.ids[2]));
            for (due, other) in of(due).into_iter().zip(of(idle)) {
                let (fault, name, bytes) = due;
                let name = format!("{name} at {}", case.pattern);
                let answered = fault.is_answered();
                let (bytes, expect) = if stranger || fault.is_refused_at(&case) {
                    (bytes, Expect::Refusal)
                } else if case.body.is_some() {
                    (other.2, Expect::RefusalOrNotDue)
                } else {
                    (bytes, Expect::RefusalOrRead)
                };
                garbage.push(Garbage { name, bytes, expect, answered });
            }
        }
    }
    target.withstands(garbage.into_iter()).await;
}

#[tokio::test]
async fn the_admin_listener_withstands_messages_that_are_no_http() {
    let (api, _) = Api::with_commands(0).await;
    let mut garbage = Vec::new();
    for pattern in ["/metrics", "/alarms"] {
        let (method, caller) = ("GET", Caller::Anyone);
        let case = Case { method, pattern, caller, writer: false, body: None };
        for (fault, name, bytes) in messages::all(&case, &case.request("")) {
            let name = format!("{name} at {pattern}");
            let refused = fault.is_refused_at(&case);
            let expect = if refused { Expect::Refusal } else { Expect::RefusalOrRead };
            garbage.push(Garbage { name, bytes, expect, answered: fault.is_answered() });
        }
    }
    send_all(garbage.into_iter(), async |garbage| {
        plain_bytes(api.admin, &garbage.bytes, garbage.answered).await
    })
    .await;
    assert_eq!(api.alarms().await, [""; 0]);
    let metrics = plain(api.admin, &Request::new("GET", "/metrics")).await;
    assert!(metrics.status == 200 && metrics.text().contains("\nalarm{"), "{metrics:?}");
    unharmed(&api);
}

#[tokio::test]
async fn mutated_requests_change_nothing() {
    let target = Target::start().await;
    let bearer = target.api.bearer();
    // Another each day is no use to whoever has to find a failure again.
    let seed = 20_261_129;
    eprintln!("the seed is {seed}");
    let mut generator = Generator::new(seed);
    let garbage = (0..MUTATIONS).map(|number| {
        let case = generator.one_of(&CASES);
        // A result of the due command is nobody's, one with a bearer is of another command.
        let (good, expect) = match (case.body, generator.one_of(&[true, false])) {
            (Some(_), true) => (case.request(&target.ids[0]).bearer(STRANGER), Expect::Refusal),
            (Some(_), false) => {
                (case.idle_request(&target.ids[2]).bearer(&bearer), Expect::RefusalOrNotDue)
            }
            (None, _) => (case.request(&target.ids[0]).bearer(&bearer), Expect::RefusalOrRead),
        };
        let bytes = generator.mutate(&good.bytes());
        let name = format!("mutation {number}, {}", String::from_utf8_lossy(&bytes));
        Garbage { name, bytes, expect, answered: false }
    });
    target.withstands(garbage.collect::<Vec<_>>().into_iter()).await;
}
