//! How it is with asking, for an alarm.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

/// How it is with asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing is known to be wrong.
    Well,
    /// Nobody could be asked for longer than the patience, with the last reason. Never a secret.
    Trouble(String),
}

/// What goes wrong, and since when. One question without an answer is no alarm: only where another
/// fails later, and none succeeded in between.
pub(crate) struct Pulse {
    since: Mutex<Since>,
    patience: Duration,
    health: watch::Sender<Health>,
}

#[derive(Default)]
struct Since {
    disconnected: Option<Instant>,
    unanswered: Option<Instant>,
    /// What is not answered is trouble by itself, which no connection ends.
    silent: bool,
}

impl Pulse {
    pub(crate) fn new(patience: Duration) -> Self {
        let health = watch::Sender::new(Health::Well);
        Self { since: Mutex::default(), patience, health }
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// There is a connection.
    pub(crate) fn connected(&self) {
        let mut since = self.since();
        since.disconnected = None;
        if !since.silent {
            self.tell(Health::Well);
        }
    }

    /// There is none.
    pub(crate) fn disconnected(&self, reason: &str) {
        let mut since = self.since();
        let first = *since.disconnected.get_or_insert_with(Instant::now);
        self.lasts(first, reason);
    }

    /// A question was answered.
    pub(crate) fn answered(&self) {
        let mut since = self.since();
        (since.unanswered, since.silent) = (None, false);
        self.tell(Health::Well);
    }

    /// A question was not answered, although there was a connection.
    pub(crate) fn unanswered(&self, reason: &str) {
        let mut since = self.since();
        let first = *since.unanswered.get_or_insert_with(Instant::now);
        since.silent |= self.lasts(first, reason);
    }

    /// Tells it if it has lasted for longer than the patience; says whether it has.
    fn lasts(&self, first: Instant, reason: &str) -> bool {
        let lasts = first.elapsed() >= self.patience;
        if lasts {
            self.tell(Health::Trouble(reason.to_owned()));
        }
        lasts
    }

    fn tell(&self, health: Health) {
        self.health.send_if_modified(|told| {
            let news = *told != health;
            *told = health;
            news
        });
    }

    fn since(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn trouble_is_told_when_it_lasts_and_ends_with_what_began_it() {
        let pulse = Pulse::new(Duration::from_secs(10));
        let health = pulse.watch();
        let now = || health.borrow().clone();
        pulse.disconnected("away");
        assert_eq!(now(), Health::Well);
        tokio::time::advance(Duration::from_secs(10)).await;
        pulse.disconnected("still away");
        assert_eq!(now(), Health::Trouble("still away".to_owned()));
        pulse.connected();
        assert_eq!(now(), Health::Well);

        pulse.unanswered("silent");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(now(), Health::Well, "one question is no alarm");
        pulse.unanswered("silent again");
        assert_eq!(now(), Health::Trouble("silent again".to_owned()));
        // A connection says nothing about who answers.
        pulse.connected();
        assert_ne!(now(), Health::Well);
        pulse.answered();
        assert_eq!(now(), Health::Well);
        pulse.unanswered("silent");
        assert_eq!(now(), Health::Well);
    }

    /// As when the connection is lost under a question, or was just before.
    #[tokio::test(start_paused = true)]
    async fn an_outage_ends_with_the_connection_also_where_one_question_had_no_answer() {
        let pulse = Pulse::new(Duration::from_secs(10));
        let health = pulse.watch();
        pulse.unanswered("the connection was lost");
        pulse.disconnected("away");
        tokio::time::advance(Duration::from_secs(10)).await;
        pulse.disconnected("still away");
        assert_eq!(*health.borrow(), Health::Trouble("still away".to_owned()));
        pulse.connected();
        assert_eq!(*health.borrow(), Health::Well);
    }
}
