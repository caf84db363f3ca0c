//! The table of refusals: each route × each way to get a request wrong. What does not apply to a
//! route stands in the table with its reason, and is sent all the same.

use serde_json::json;
use site_protocol::{openapi, paths};

use test_support::TokenRequest;

use crate::support::{
    ADMISSION, Answer, CASES, Case, Cluster, NAMESPACE, OURS, Place, RUNTIME, Request, SSH_CASES,
    STRANGER, dump,
};

/// A way to get a request wrong.
#[derive(Clone, Copy, Debug)]
enum Way {
    NoToken,
    UnknownForm,
    WrongSite,
    WrongScope,
    Expired,
    Revoked,
    GarbageToken,
    TokenForOthers,
    TokenOfNoPod,
    AccountWithoutGrant,
    AdmissionAccount,
    MalformedBody,
    TooLarge,
    UnknownField,
    UnknownParameter,
    WrongMethod,
    WrongContentType,
    NoGeneration,
    FirstGenerationWithSession,
    LaterGenerationWithoutSession,
}

const WAYS: [Way; 20] = [
    Way::NoToken,
    Way::UnknownForm,
    Way::WrongSite,
    Way::WrongScope,
    Way::Expired,
    Way::Revoked,
    Way::GarbageToken,
    Way::TokenForOthers,
    Way::TokenOfNoPod,
    Way::AccountWithoutGrant,
    Way::AdmissionAccount,
    Way::MalformedBody,
    Way::TooLarge,
    Way::UnknownField,
    Way::UnknownParameter,
    Way::WrongMethod,
    Way::WrongContentType,
    Way::NoGeneration,
    Way::FirstGenerationWithSession,
    Way::LaterGenerationWithoutSession,
];

/// What is answered.
enum Expect {
    /// The problem of this code.
    Code(&'static str),
    /// 422 that names this field.
    Field(&'static str),
    /// The same as without it, for this reason.
    Same(&'static str),
}

use Expect::{Code, Field, Same};

/// A route's line of the table.
struct Row {
    route: (&'static str, &'static str),
    expects: fn(Way) -> Expect,
}

const TABLE: [Row; 9] = [
    Row {
        route: ("GET", "/v1/site/commands/"),
        expects: |way| match way {
            Way::MalformedBody | Way::TooLarge | Way::UnknownField | Way::WrongContentType => {
                Same("nothing is read of a poll's body")
            }
            way => of_a_writer(way),
        },
    },
    Row {
        route: ("POST", "/v1/site/commands/sessions"),
        expects: |way| match way {
            Way::NoGeneration
            | Way::FirstGenerationWithSession
            | Way::LaterGenerationWithoutSession => Same(
                "the generation is what it asks for; a header that a route does not know is ignored",
            ),
            way => of_a_runtime(way),
        },
    },
    Row { route: ("PUT", "/v1/site/commands/results"), expects: of_a_writer },
    Row { route: ("PUT", "/v1/site/commands/{commandId}/result"), expects: of_a_writer },
    Row {
        route: ("PUT", "/v1/site/commands/{commandId}/outputs/{digest}"),
        expects: |way| match way {
            Way::MalformedBody => Field("digest"),
            Way::UnknownField => Same("an output is any bytes: it has no fields"),
            way => of_a_writer(way),
        },
    },
    Row {
        route: ("GET", "/v1/site/executions/{runId}"),
        expects: |way| match way {
            Way::AdmissionAccount => Same("an Admission reads accepted Runs"),
            Way::MalformedBody | Way::TooLarge | Way::UnknownField | Way::WrongContentType => {
                Same("nothing is read of its body")
            }
            way => of_no_writer(way),
        },
    },
    Row { route: ("POST", "/v1/site/executions/{runId}/authorisations"), expects: of_no_writer },
    Row {
        route: ("GET", "/v1/site/executions/{runId}/output"),
        expects: |way| match way {
            Way::WrongMethod => Code("method_not_allowed"),
            // With a member's own token each is in executions/rabbitmq/output.rs.
            _ => Code("unauthenticated"),
        },
    },
    Row {
        route: ("GET", "/healthz"),
        expects: |way| match way {
            Way::NoToken
            | Way::UnknownForm
            | Way::WrongSite
            | Way::WrongScope
            | Way::Expired
            | Way::Revoked
            | Way::GarbageToken
            | Way::TokenForOthers
            | Way::TokenOfNoPod
            | Way::AccountWithoutGrant
            | Way::AdmissionAccount => Same("a probe has no bearer"),
            Way::MalformedBody | Way::TooLarge | Way::UnknownField | Way::WrongContentType => {
                Same("nothing is read of a probe's body")
            }
            Way::UnknownParameter => Same("a probe may ask as it likes"),
            Way::WrongMethod => Code("method_not_allowed"),
            Way::NoGeneration
            | Way::FirstGenerationWithSession
            | Way::LaterGenerationWithoutSession => Same("a probe writes nothing"),
        },
    },
];

/// The same for the routes of a listener that serves SSH access, by the bearers of its agent.
const SSH_TABLE: [Row; 3] = [
    Row { route: ("GET", "/v1/site/ssh-access/changes"), expects: of_an_agent_that_reads },
    Row { route: ("GET", "/v1/site/ssh-access/snapshot"), expects: of_an_agent_that_reads },
    Row { route: ("PUT", "/v1/site/ssh-access/acknowledgement"), expects: of_an_agent },
];

fn of_an_agent_that_reads(way: Way) -> Expect {
    match way {
        Way::MalformedBody | Way::TooLarge | Way::UnknownField | Way::WrongContentType => {
            Same("nothing is read of its body")
        }
        way => of_an_agent(way),
    }
}

/// What every route of an SSH agent with a JSON body refuses.
fn of_an_agent(way: Way) -> Expect {
    match way {
        // It has no account in any cluster.
        Way::AdmissionAccount => Code("unauthenticated"),
        way => of_no_writer(way),
    }
}

fn of_a_writer(way: Way) -> Expect {
    match way {
        Way::NoGeneration => Field("runtime-generation"),
        Way::FirstGenerationWithSession | Way::LaterGenerationWithoutSession => {
            Field("runtime-session")
        }
        way => of_a_runtime(way),
    }
}

/// As [`of_a_runtime`], for a route that no stream has.
fn of_no_writer(way: Way) -> Expect {
    match way {
        Way::NoGeneration
        | Way::FirstGenerationWithSession
        | Way::LaterGenerationWithoutSession => {
            Same("a Run is no stream; a header that a route does not know is ignored")
        }
        way => of_a_runtime(way),
    }
}

/// What every route of a Runtime with a JSON body refuses.
fn of_a_runtime(way: Way) -> Expect {
    match way {
        Way::NoToken
        | Way::UnknownForm
        | Way::Expired
        | Way::Revoked
        | Way::GarbageToken
        | Way::TokenForOthers
        | Way::TokenOfNoPod
        | Way::AccountWithoutGrant => Code("unauthenticated"),
        Way::WrongSite => Code("site_mismatch"),
        Way::WrongScope | Way::AdmissionAccount => Code("forbidden"),
        Way::MalformedBody => Code("malformed_body"),
        Way::TooLarge => Code("body_too_large"),
        Way::UnknownField => Field("nonsense"),
        Way::UnknownParameter => Field("nonsense"),
        Way::WrongMethod => Code("method_not_allowed"),
        Way::WrongContentType => Code("unsupported_media_type"),
        Way::NoGeneration
        | Way::FirstGenerationWithSession
        | Way::LaterGenerationWithoutSession => unreachable!("only of a writer"),
    }
}

/// The bearers that the ways need.
struct Bearers {
    good: String,
    expired: String,
    revoked: String,
    other_site: String,
    other_scope: String,
    for_others: String,
    of_no_pod: String,
    without_grant: String,
    admission: String,
}

impl Bearers {
    /// Those of the callers of a scope.
    fn issue(place: &Place, cluster: &Cluster, scope: &str) -> Self {
        let runtime = place.site.bearer().unwrap();
        let issue = || {
            place.site.issue_bearer(scope, "bearer").unwrap();
            place.site.bearer().unwrap()
        };
        let end = |name: &str, time: &str| {
            place.edit_grants(|grants| grants.last_mut().unwrap()[name] = json!(time));
        };
        let expired = if scope == "commands" { runtime.clone() } else { issue() };
        end("expiresAt", "2026-01-02T00:00:00Z");
        end("issuedAt", "2026-01-01T00:00:00Z");
        let revoked = issue();
        end("revokedAt", "2026-01-03T00:00:00Z");
        let good = issue();
        let agent = |site| place.issue(&["--scope", "ssh-access", "--site", site]);
        let (other_site, other_scope) = if scope == "commands" {
            let south = ["--scope", "commands", "--site", "south-1", "--environment", "slurm"];
            (place.issue(&south), agent("north-1"))
        } else {
            (agent("south-1"), runtime)
        };
        Self {
            good,
            expired,
            revoked,
            other_site,
            other_scope,
            for_others: cluster.token_of(RUNTIME, &["vault"]),
            of_no_pod: cluster.api.issue(TokenRequest::new(NAMESPACE, RUNTIME, OURS)),
            without_grant: cluster.token_of(STRANGER, OURS),
            admission: cluster.token_of(ADMISSION, OURS),
        }
    }
}

/// A request that is spoilt in a way.
fn spoilt(case: &Case, way: Way, good: Request, bearers: &Bearers) -> Request {
    let bearer = |request: Request| request.bearer(&bearers.good);
    let writer = |generation: &str| {
        let good = good.clone().without("runtime-generation");
        bearer(good.header("runtime-generation", generation))
    };
    let json = good.headers.iter().any(|(_, value)| value == "application/json");
    match way {
        Way::NoToken => good,
        Way::UnknownForm => good.bearer("eyJhbGciOiJub25lIn0.e30."),
        Way::WrongSite => good.bearer(&bearers.other_site),
        Way::WrongScope => good.bearer(&bearers.other_scope),
        Way::Expired => good.bearer(&bearers.expired),
        Way::Revoked => good.bearer(&bearers.revoked),
        Way::GarbageToken => good.bearer("eyJhbGciOiJub25lIn0.e30.c2lnbmVk"),
        Way::TokenForOthers => good.bearer(&bearers.for_others),
        Way::TokenOfNoPod => good.bearer(&bearers.of_no_pod),
        Way::AccountWithoutGrant => good.bearer(&bearers.without_grant),
        Way::AdmissionAccount => good.bearer(&bearers.admission),
        Way::MalformedBody => bearer(good.body(b"{\"outcome\":")),
        Way::TooLarge => {
            let large = vec![b' '; case.most_bytes() + 1];
            bearer(good.body(&large))
        }
        Way::UnknownField => {
            let body = String::from_utf8(good.body.clone()).unwrap();
            let body = body.replacen('{', "{\"nonsense\":1,", 1);
            bearer(if json { good.body(body.as_bytes()) } else { good })
        }
        Way::UnknownParameter => bearer(good.query("nonsense=1")),
        Way::WrongMethod => bearer(good.method("DELETE")),
        Way::WrongContentType => {
            bearer(good.without("content-type").header("content-type", "text/plain"))
        }
        Way::NoGeneration => bearer(good.without("runtime-generation")),
        Way::FirstGenerationWithSession => {
            writer("1").header("runtime-session", "0123456789abcdef")
        }
        Way::LaterGenerationWithoutSession => writer("2"),
    }
}

/// What is told of an answer.
fn told(answer: &Answer) -> String {
    if answer.status < 400 { answer.status.to_string() } else { answer.code() }
}

#[tokio::test]
async fn each_route_refuses_each_wrong_request_and_nothing_changes() {
    assert_refused("commands", &CASES, &TABLE).await;
}

#[tokio::test]
async fn each_route_of_ssh_access_refuses_each_wrong_request_and_nothing_changes() {
    assert_refused("ssh-access", &SSH_CASES, &SSH_TABLE).await;
}

/// Spoils requests of the callers of a scope in each way.
async fn assert_refused(scope: &str, cases: &[Case], table: &[Row]) {
    let place = Place::prepare().await;
    let cluster = Cluster::beside(&place).await;
    let bearers = Bearers::issue(&place, &cluster, scope);
    let ids = place.enqueue(&["{}", "{}", "{}"]);
    let mut command = place.command();
    place.authority(&mut command);
    place.ssh_access(&mut command);
    cluster.settings(&mut command);
    let api = place.start_by(command).await;
    let sql = api.sql().await;
    let before = dump(&sql).await;
    for (case, row) in cases.iter().zip(table) {
        let route = openapi::ROUTES
            .iter()
            .find(|route| (route.method, route.path) == (case.method, case.pattern))
            .unwrap();
        let idle = case.idle_request(&ids[2]);
        let plain = told(&api.send(&idle.clone().bearer(&bearers.good)).await);
        for way in WAYS {
            let name = format!("{way:?} at {} {}", case.method, case.pattern);
            // What is refused would change something if it were not.
            let due = spoilt(case, way, case.request(&ids[0]), &bearers);
            let answer = match (row.expects)(way) {
                Same(reason) => {
                    let answer = api.send(&spoilt(case, way, idle.clone(), &bearers)).await;
                    assert_eq!(told(&answer), plain, "{name}: {reason}");
                    answer
                }
                Code(code) => {
                    let answer = api.send(&due).await;
                    assert_eq!(told(&answer), code, "{name}");
                    answer
                }
                Field(field) => {
                    let answer = api.send(&due).await;
                    assert_eq!(told(&answer), "invalid_request", "{name}");
                    let named = answer.problem().fields;
                    assert!(named.iter().any(|named| named.field == field), "{name}: {named:?}");
                    answer
                }
            };
            if answer.status >= 400 {
                let listed = route.codes().any(|code| code.as_str() == answer.code());
                assert!(listed, "{name}: {} is not listed for the route", answer.code());
            }
        }
    }
    assert_eq!(dump(&sql).await, before);
}

#[test]
fn every_route_has_its_line_in_the_table() {
    assert_eq!(TABLE.map(|row| row.route).as_slice(), paths::ALL);
    assert_eq!(SSH_TABLE.map(|row| row.route).as_slice(), paths::SSH_ACCESS);
}
