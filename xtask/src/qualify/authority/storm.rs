//! Callers that ask without end, while what they need is taken away and given back, and what answers
//! them is killed.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;
use https_client::{Answer, SendError};
use rustix::process::Signal;
use serde_json::Value;
use test_support::Random;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::timeline::{Away, History, Moment, Request, Told};
use crate::{
    stop::Stop,
    surroundings::{
        AUDIENCE, BETO_SECONDS, Surroundings,
        calls::{Api, code, execute, execution},
        rule,
    },
};

/// How many callers ask each question at once.
const CALLERS: usize = 3;
/// Between two requests of a caller.
const PACE: Duration = Duration::from_millis(5);
/// How long something stays away: several requests, and where nobody can be asked a whole question
/// with its budget.
const AWAY: Duration = Duration::from_millis(1500);
const SILENT: Duration = Duration::from_millis(1000 * BETO_SECONDS + 1500);
/// How long everything is there again before the next.
const THERE: Duration = Duration::from_millis(700);
/// How long everything may take to be a yes again.
const RECOVERS_WITHIN: Duration = Duration::from_secs(120);

const RUN: &str = "run-2";
const MEMBER: &str = "grace";
const UID: u32 = 2002;

const EXECUTE: &str = "execute";
const VIEW: &str = "view";
const BOTH: &[&str] = &[EXECUTE, VIEW];

/// What is taken away or broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The permission to execute.
    Permission,
    /// The permission to see the output.
    View,
    /// The binding of the member.
    Binding,
    /// Another Attempt is submitted.
    Attempt,
    /// SIGKILL to the responder.
    Responder,
    /// SIGSTOP to the responder.
    Silence,
    /// SIGKILL to the broker.
    Broker,
    /// SIGKILL to `site-api`.
    SiteApi,
    /// SIGKILL to PostgreSQL.
    Postgres,
}

/// All of them, which is a round.
const ROUND: [Fault; 9] = [
    Fault::Permission,
    Fault::View,
    Fault::Binding,
    Fault::Attempt,
    Fault::Responder,
    Fault::Silence,
    Fault::Broker,
    Fault::SiteApi,
    Fault::Postgres,
];

/// What the callers share with what goes on.
struct Shared {
    began: Instant,
    requests: Mutex<Vec<Request>>,
    /// The Attempt that is the latest, and the one before it.
    attempt: watch::Sender<u32>,
    enough: watch::Sender<bool>,
}

impl Shared {
    fn now(&self) -> Moment {
        self.began.elapsed()
    }

    fn note(&self, question: &'static str, began: Moment, told: Told) {
        let request = Request { question, began, ended: self.now(), told };
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }
}

/// Runs it for so long, and gives everything that happened.
pub(super) async fn rage(
    stop: &Stop,
    all: &mut Surroundings,
    seed: u64,
    length: Duration,
) -> Result<History, Box<dyn Error>> {
    let began = Instant::now();
    let shared = Arc::new(Shared {
        began,
        requests: Mutex::default(),
        attempt: watch::Sender::new(1),
        enough: watch::Sender::new(false),
    });
    all.accept(RUN, MEMBER)?;
    execute(all, &Api::of(&all.site)?, RUN, &Bytes::from(vec![9; 100_000])).await?;
    all.allow(&everything())?;
    let binding = all.retain(MEMBER, UID)?;
    let callers = callers(all, &shared).await?;
    let mut storm = Storm { all, binding, shared: Arc::clone(&shared), aways: Vec::new() };
    let mut random = Random::from_seed(seed);
    let mut faults = Vec::new();
    // A round is finished, so that nothing is left out.
    loop {
        if faults.is_empty() {
            if began.elapsed() >= length {
                break;
            }
            faults = shuffled(&mut random);
        }
        let Some(fault) = faults.pop() else { break };
        // Not cut in the middle: what is away is given back.
        storm.bring_about(fault).await?;
        stop.unless(sleep(THERE)).await?;
    }
    let last = shared.now();
    let recovered = stop.unless(storm.recovers(last)).await?;
    let aways = storm.aways;
    shared.enough.send_replace(true);
    callers.join_all().await;
    let requests =
        std::mem::take(&mut *shared.requests.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(History { requests, aways, recovered })
}

fn everything() -> Vec<Value> {
    vec![rule("runs.execute", MEMBER), rule("runs.output.view", MEMBER)]
}

/// Each kind of fault before any comes again.
fn shuffled(random: &mut Random) -> Vec<Fault> {
    let mut faults = ROUND.to_vec();
    for last in (1..faults.len()).rev() {
        let other = usize::try_from(random.within(0..last as u64 + 1)).unwrap_or_default();
        faults.swap(last, other);
    }
    faults
}

async fn callers(all: &Surroundings, shared: &Arc<Shared>) -> Result<JoinSet<()>, Box<dyn Error>> {
    let (api, bearer) = (Api::of(&all.site)?, all.site.bearer()?);
    let member = all.member_tokens(MEMBER, AUDIENCE).await.access_token;
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (api, bearer, shared) = (api.clone(), bearer.clone(), Arc::clone(shared));
        callers.spawn(until_enough(shared, EXECUTE, move |attempt| {
            let (api, bearer) = (api.clone(), bearer.clone());
            async move { told(&api.authorise(&bearer, RUN, attempt, "execute").await) }
        }));
    }
    for _ in 0..CALLERS {
        let (api, member, path, shared) =
            (api.clone(), member.clone(), format!("{}/output", execution(RUN)), Arc::clone(shared));
        callers.spawn(until_enough(shared, VIEW, move |_| {
            let (api, member, path) = (api.clone(), member.clone(), path.clone());
            async move { told(&api.get(&path, &member).await) }
        }));
    }
    Ok(callers)
}

async fn until_enough<F: Future<Output = Told>>(
    shared: Arc<Shared>,
    question: &'static str,
    ask: impl Fn(u32) -> F,
) {
    while !*shared.enough.borrow() {
        let attempt = *shared.attempt.borrow();
        let began = shared.now();
        let told = ask(attempt).await;
        shared.note(question, began, told);
        sleep(PACE).await;
    }
}

struct Storm<'a> {
    all: &'a mut Surroundings,
    binding: String,
    shared: Arc<Shared>,
    aways: Vec<Away>,
}

impl Storm<'_> {
    async fn bring_about(&mut self, fault: Fault) -> Result<(), Box<dyn Error>> {
        match fault {
            Fault::Permission => {
                self.all.allow(&[rule("runs.output.view", MEMBER)])?;
                let from = self.shared.now();
                self.stays(
                    from,
                    "the permission is taken away",
                    &[EXECUTE],
                    &["permission_denied"],
                )
                .await;
                self.all.allow(&everything())
            }
            Fault::View => {
                self.all.allow(&[rule("runs.execute", MEMBER)])?;
                let from = self.shared.now();
                self.stays(from, "the permission to see is taken away", &[VIEW], &["not_found"])
                    .await;
                self.all.allow(&everything())
            }
            Fault::Binding => {
                self.all.release(&self.binding)?;
                let from = self.shared.now();
                self.stays(from, "the binding is released", &[EXECUTE], &["binding_not_retained"])
                    .await;
                self.binding = self.all.retain(MEMBER, UID)?;
                Ok(())
            }
            Fault::Attempt => {
                let next = *self.shared.attempt.borrow() + 1;
                self.all.submit(RUN, next)?;
                let from = self.shared.now();
                let what = "another Attempt is the latest";
                self.stays(from, what, &[EXECUTE], &["attempt_not_current"]).await;
                self.shared.attempt.send_replace(next);
                Ok(())
            }
            Fault::Responder => {
                self.all.responder.kill();
                let from = self.shared.now();
                self.stays(from, "the responder is dead", BOTH, &[]).await;
                self.all.restart_responder().await
            }
            Fault::Silence => {
                self.all.responder.signal(Signal::STOP);
                let from = self.shared.now();
                self.stays(from, "the responder is silent", BOTH, &[]).await;
                self.all.responder.signal(Signal::CONT);
                Ok(())
            }
            Fault::Broker => {
                self.all.outside.broker.kill();
                let from = self.shared.now();
                self.stays(from, "the broker is dead", BOTH, &[]).await;
                Ok(self.all.outside.broker.restart().await?)
            }
            Fault::SiteApi => {
                self.all.site_api.kill();
                self.all.restart_site_api().await
            }
            Fault::Postgres => {
                self.all.outside.cluster.kill();
                Ok(self.all.outside.cluster.restart().await?)
            }
        }
    }

    /// Lets something be away for a while, from the moment when it surely is.
    async fn stays(
        &mut self,
        from: Moment,
        what: &'static str,
        questions: &'static [&'static str],
        codes: &'static [&'static str],
    ) {
        sleep(if codes.is_empty() { SILENT } else { AWAY }).await;
        let until = self.shared.now();
        self.aways.push(Away { what, questions, codes, from, until });
    }

    /// How long it took after `last` until each question was a yes.
    async fn recovers(&self, last: Moment) -> Option<Duration> {
        let all_yes = || {
            let requests = self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
            BOTH.iter().all(|question| {
                let later = requests.iter().rev().take_while(|request| request.began >= last);
                later
                    .filter(|request| request.question == *question)
                    .any(|request| request.told == Told::Yes)
            })
        };
        let recovered = async {
            while !all_yes() {
                sleep(PACE).await;
            }
        };
        timeout(RECOVERS_WITHIN, recovered).await.ok()?;
        Some(self.shared.now().saturating_sub(last))
    }
}

/// What a request came to.
fn told(answer: &Result<Answer, SendError>) -> Told {
    match answer {
        Err(_) => Told::NoAnswer,
        Ok(answer) if answer.status.is_success() => Told::Yes,
        Ok(answer) if answer.status == StatusCode::SERVICE_UNAVAILABLE => {
            Told::Unavailable(code(answer))
        }
        Ok(answer) => Told::No(code(answer)),
    }
}
