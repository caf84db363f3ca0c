//! Garbage of every kind on every route: each is answered with a problem, or the connection ends;
//! nothing is changed, and the next caller is served.

mod bodies;
mod generator;
mod messages;

use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::support::{Answer, Api, CASES, Caller, Case, dump};
use generator::Generator;

/// How many mutated requests are sent, and how many pieces of garbage are under way at once.
const MUTATIONS: u64 = 600;
const AT_ONCE: usize = 24;

/// What is expected of one piece of garbage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// One answer, a problem: the message was in order, what it held was not.
    Problem,
    /// A problem, or the end of the connection.
    Refusal,
    /// As well a success of a route that only reads: the garbage may be none after all.
    RefusalOrRead,
}

/// What is sent, with a name for the report.
struct Garbage {
    name: String,
    bytes: Vec<u8>,
    expect: Expect,
}

/// A Site whose stream has three commands without a result: one that is due, two that are not.
struct Target {
    api: Api,
    ids: Vec<String>,
}

impl Target {
    async fn start() -> Self {
        let (api, ids) = Api::with_commands(3).await;
        Self { api, ids }
    }

    /// Sends everything and checks each answer, and at the end that nothing has changed.
    async fn withstands(&self, garbage: impl Iterator<Item = Garbage>) {
        let sql = self.api.sql().await;
        let before = dump(&sql).await;
        let sent = stream::iter(garbage).map(async |garbage| {
            let answers = match garbage.expect {
                Expect::Problem => vec![self.api.wire.send_whole(&garbage.bytes).await],
                _ => self.api.wire.send_bytes(&garbage.bytes).await,
            };
            for answer in &answers {
                assert!(allowed(answer, garbage.expect), "{}: {answer:?}", garbage.name);
            }
            answers.len()
        });
        let answers: Vec<usize> = sent.buffer_unordered(AT_ONCE).collect().await;
        assert!(answers.iter().any(|count| *count > 0), "the server answers nothing");
        assert_eq!(dump(&sql).await, before, "garbage has changed something");

        let page = self.api.send(&self.api.poll("after=0")).await.json();
        assert_eq!((&page["nextAfter"], &page["head"]["seq"]), (&json!(3), &json!(1)));
        assert_eq!(self.api.process.exit(), None);
        let bad = |text: &str| text.contains("panicked") || text.contains("\"http.status\":500");
        let lines = self.api.process.lines();
        let bad: Vec<_> = lines.iter().filter(|line| bad(&line.text)).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }
}

fn allowed(answer: &Answer, expect: Expect) -> bool {
    if answer.status == 200 {
        return expect == Expect::RefusalOrRead;
    }
    let problem = answer.problem();
    (400..500).contains(&problem.status)
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
                garbage.push(Garbage { name, bytes: request.bytes(), expect: Expect::Problem });
            }
        }
    }
    target.withstands(garbage.into_iter()).await;
}

#[tokio::test]
async fn messages_that_are_no_http_change_nothing() {
    let target = Target::start().await;
    let tokens = [target.api.bearer(), "scnb_none".to_owned()];
    let mut garbage = Vec::new();
    for case in CASES {
        for token in &tokens {
            // Of a command that is not due: whatever is taken for a result is refused as well.
            let good = case.request(&target.ids[2]).bearer(token);
            let reads =
                case.body.is_none() && (case.caller == Caller::Anyone || *token == tokens[0]);
            for (name, bytes) in messages::all(&case, &good) {
                let expect = if reads { Expect::RefusalOrRead } else { Expect::Refusal };
                let name = format!("{name} at {}", case.pattern);
                garbage.push(Garbage { name, bytes, expect });
            }
        }
    }
    target.withstands(garbage.into_iter()).await;
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
        let good = case.request(&target.ids[2]).bearer(&bearer);
        let bytes = generator.mutate(&good.bytes());
        let name = format!("mutation {number}, {}", String::from_utf8_lossy(&bytes));
        Garbage { name, bytes, expect: Expect::RefusalOrRead }
    });
    target.withstands(garbage.collect::<Vec<_>>().into_iter()).await;
}
