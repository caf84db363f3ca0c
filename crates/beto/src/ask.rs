//! Asking: one time budget from the first step to the answer.

use std::{sync::Arc, time::Duration};

use broker::Broker;
use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout_at},
};

use crate::{
    AnswerError, Caller, Decision, Health, Question, RESPONDER,
    health::Pulse,
    keeper::{Keeper, Standing},
    line::Line,
};

/// One caller's way to Beto. Its connection is made in the background, and ends with the value.
pub struct Beto {
    caller: Caller,
    budget: Duration,
    standing: watch::Receiver<Standing>,
    wanted: Arc<Notify>,
    pulse: Arc<Pulse>,
    /// The keeper ends when this does.
    _closing: watch::Sender<()>,
}

/// What a caller needs to ask.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(crate) caller: Caller,
    pub(crate) broker: Broker,
    pub(crate) responder: String,
    pub(crate) budget: Duration,
    pub(crate) pace: Pace,
}

/// How often it is tried to connect, and when trouble is told.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The shortest time between two attempts to connect, whoever waits.
    pub between: Duration,
    /// The first pause after a failure, which a question ends. It doubles with each.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// How long trouble may last before it is told.
    pub patience: Duration,
}

/// Why a caller can't ask at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The broker's URL has another user than the caller.
    #[error("the broker's user must be {expected}")]
    User {
        /// The caller.
        expected: Caller,
    },
}

/// Nobody knows whether the member may: never a yes, and no no either.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CouldNotAsk {
    /// There is no connection to the broker.
    #[error("no connection to the broker: {0}")]
    NotConnected(String),
    /// The connection, the reply queue or the right to ask was lost while the question was on its way.
    #[error("the connection to the broker was lost: {0}")]
    Lost(String),
    /// The broker returned the question: no queue takes questions.
    #[error("nobody listens for questions")]
    NobodyListens,
    /// The broker refused the question, as too many wait.
    #[error("the broker did not take the question")]
    NotTaken,
    /// The broker did not confirm in time that it has the question.
    #[error("the broker did not confirm the question in time")]
    NotConfirmed,
    /// No answer came in time.
    #[error("no answer came in time")]
    NoAnswer,
    /// What the responder sent is no answer to the question.
    #[error("the answer can't be used: {0}")]
    Answer(#[from] AnswerError),
    /// The permission is another caller's: a fault of ours.
    #[error("{caller} does not ask for this permission")]
    NotOurs {
        /// Who was to ask.
        caller: Caller,
    },
    /// The random source failed.
    #[error("the random source failed")]
    NoRandomness,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            between: Duration::from_millis(200),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(10),
            patience: Duration::from_secs(10),
        }
    }
}

impl Setup {
    /// How long a question may take, where nothing else is set.
    pub const BUDGET: Duration = Duration::from_secs(3);

    /// A caller of the responder [`RESPONDER`], at the broker where it is the caller's own user.
    ///
    /// # Errors
    ///
    /// When the broker's user is another.
    pub fn new(caller: Caller, broker: Broker) -> Result<Self, SetupError> {
        if broker.user() != caller.user() {
            return Err(SetupError::User { expected: caller });
        }
        let (responder, pace) = (RESPONDER.to_owned(), Pace::default());
        Ok(Self { caller, broker, responder, budget: Self::BUDGET, pace })
    }

    /// With another time for a question: for all of it, from connecting to the answer.
    #[must_use]
    pub fn with_budget(self, budget: Duration) -> Self {
        Self { budget, ..self }
    }

    /// With another user of the broker whose answers count.
    #[must_use]
    pub fn with_responder(self, responder: String) -> Self {
        Self { responder, ..self }
    }

    /// With another pace.
    #[must_use]
    pub fn with_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }
}

impl Beto {
    /// Begins to connect, in a task of the current runtime. A broker that is away is no error here.
    #[must_use]
    pub fn start(setup: Setup, random: SystemRandom, clock: fn() -> DateTime<Utc>) -> Self {
        let (caller, budget) = (setup.caller, setup.budget);
        let pulse = Arc::new(Pulse::new(setup.pace.patience));
        let wanted = Arc::new(Notify::new());
        let (tell, standing) = watch::channel(Standing::default());
        let (closing, closed) = watch::channel(());
        let keeper = Keeper {
            setup,
            random,
            clock,
            tell,
            wanted: Arc::clone(&wanted),
            pulse: Arc::clone(&pulse),
        };
        tokio::spawn(keeper.run(closed));
        Self { caller, budget, standing, wanted, pulse, _closing: closing }
    }

    /// Asks, now: nothing is remembered of an earlier answer.
    ///
    /// # Errors
    ///
    /// Whenever there is any doubt about the answer, at the latest when the budget is over.
    pub async fn ask(&self, question: &Question) -> Result<Decision, CouldNotAsk> {
        if !self.caller.permissions().contains(&question.permission()) {
            return Err(CouldNotAsk::NotOurs { caller: self.caller });
        }
        let deadline = Instant::now() + self.budget;
        let line = self.line(deadline).await?;
        let outcome = line.ask(question, deadline).await;
        match &outcome {
            Ok(_) => self.pulse.answered(),
            // That there is no connection is told by who keeps it.
            Err(CouldNotAsk::Lost(_)) => {}
            Err(error) => self.pulse.unanswered(&error.to_string()),
        }
        outcome
    }

    /// How it is with asking, and every change of that.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.pulse.watch()
    }

    /// The open line, or the next one. An attempt to connect that began before the question may have
    /// met a broker that was still away: it does not count, unless it succeeds.
    async fn line(&self, deadline: Instant) -> Result<Arc<Line>, CouldNotAsk> {
        let mut standing = self.standing.clone();
        let next = {
            let now = standing.borrow_and_update();
            if let Some(line) = &now.line {
                return Ok(Arc::clone(line));
            }
            now.begun + 1
        };
        self.wanted.notify_one();
        let failed = |standing: &Standing| standing.failed >= next;
        let told = standing.wait_for(|now| now.line.is_some() || failed(now));
        let reason = match timeout_at(deadline, told).await {
            Ok(Ok(now)) => match &now.line {
                Some(line) => return Ok(Arc::clone(line)),
                None => now.reason.clone(),
            },
            Ok(Err(_)) => "nobody makes one any more".to_owned(),
            Err(_) => match self.standing.borrow().reason.as_str() {
                "" => "it was not made in time".to_owned(),
                reason => format!("it was not made in time; before: {reason}"),
            },
        };
        Err(CouldNotAsk::NotConnected(reason))
    }
}
