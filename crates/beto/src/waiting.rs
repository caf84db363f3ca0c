//! The questions that wait for an answer, by their correlation ids.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::{CouldNotAsk, Decision, Question};

/// What came of a question.
pub(crate) type Outcome = Result<Decision, CouldNotAsk>;

/// The questions of one connection. Each is told one outcome, by whoever comes first.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<State>);

#[derive(Default)]
struct State {
    places: HashMap<String, Asked>,
    /// Why nobody can be told anything any more.
    lost: Option<CouldNotAsk>,
}

struct Asked {
    question: Question,
    tell: oneshot::Sender<Outcome>,
}

/// The place of one question, which is given up with the value.
pub(crate) struct Place<'a> {
    waiting: &'a Waiting,
    correlation_id: String,
    heard: oneshot::Receiver<Outcome>,
}

impl Waiting {
    /// Takes a place for a question.
    pub(crate) fn place(
        &self,
        correlation_id: String,
        question: &Question,
    ) -> Result<Place<'_>, CouldNotAsk> {
        let (tell, heard) = oneshot::channel();
        let mut state = self.state();
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        let asked = Asked { question: question.clone(), tell };
        state.places.insert(correlation_id.clone(), asked);
        Ok(Place { waiting: self, correlation_id, heard })
    }

    /// Whether a question waits.
    pub(crate) fn holds(&self, correlation_id: &str) -> bool {
        self.state().places.contains_key(correlation_id)
    }

    /// Tells a question that still waits what came of it.
    pub(crate) fn settle(&self, correlation_id: &str, outcome: impl FnOnce(&Question) -> Outcome) {
        let asked = self.state().places.remove(correlation_id);
        if let Some(Asked { question, tell }) = asked {
            // Who asked may have left at this moment.
            let _ = tell.send(outcome(&question));
        }
    }

    /// Tells everybody that waits, and everybody that comes, that the connection is gone.
    pub(crate) fn lose(&self, why: &CouldNotAsk) {
        let places = {
            let mut state = self.state();
            state.lost.get_or_insert_with(|| why.clone());
            std::mem::take(&mut state.places)
        };
        for asked in places.into_values() {
            let _ = asked.tell.send(Err(why.clone()));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// Waits for the outcome; none when nobody can tell it any more.
    pub(crate) async fn heard(&mut self) -> Option<Outcome> {
        (&mut self.heard).await.ok()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiting.state().places.remove(&self.correlation_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    fn question() -> Question {
        let name = || Name::parse("n").unwrap();
        Question::manages_site(name(), name(), name())
    }

    #[tokio::test]
    async fn a_question_is_told_one_outcome_and_no_other() {
        let waiting = Waiting::default();
        let mut one = waiting.place("1".to_owned(), &question()).unwrap();
        let mut other = waiting.place("2".to_owned(), &question()).unwrap();
        waiting.settle("3", |_| panic!("nobody waits"));
        waiting.settle("1", |_| Ok(Decision::Deny));
        waiting.settle("1", |_| panic!("it was told already"));
        assert!(!waiting.holds("1") && waiting.holds("2"));
        assert_eq!(one.heard().await, Some(Ok(Decision::Deny)));
        waiting.settle("2", |_| Ok(Decision::Allow));
        assert_eq!(other.heard().await, Some(Ok(Decision::Allow)));
    }

    #[test]
    fn who_leaves_leaves_no_place_behind() {
        let waiting = Waiting::default();
        let place = waiting.place("1".to_owned(), &question()).unwrap();
        assert!(waiting.holds("1"));
        drop(place);
        assert!(!waiting.holds("1"));
    }

    #[tokio::test]
    async fn when_the_line_is_lost_everybody_hears_it_who_waits_or_comes() {
        let waiting = Waiting::default();
        let mut place = waiting.place("1".to_owned(), &question()).unwrap();
        waiting.lose(&CouldNotAsk::Lost("first".to_owned()));
        waiting.lose(&CouldNotAsk::Lost("second".to_owned()));
        let lost = CouldNotAsk::Lost("first".to_owned());
        assert_eq!(place.heard().await, Some(Err(lost.clone())));
        assert_eq!(waiting.place("2".to_owned(), &question()).err(), Some(lost));
    }
}
