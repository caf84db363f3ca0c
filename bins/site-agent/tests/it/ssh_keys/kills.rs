//! SIGKILL at any moment: every file is whole, and what was acknowledged is in the files.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use site_client::SshCursor;
use test_support::{Random, Received};

use super::{SshAgent, beside, feed::Feed, key_id};

/// The longest pause between a start and a kill.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// What is in force after each change, from the beginning.
type History = Arc<Mutex<Vec<Vec<(String, String)>>>>;

/// A feed whose changes are remembered.
struct Remembered {
    feed: Feed,
    history: History,
    random: Random,
}

impl Remembered {
    /// Some random changes.
    fn change(&mut self, count: u64) {
        for _ in 0..count {
            let number = u32::try_from(self.random.within(0..40)).unwrap();
            let user = format!("user{}", number % 7);
            let held = (user.clone(), key_id(number));
            if self.feed.in_force().contains(&held) {
                self.feed.remove(&user, number);
            } else {
                self.feed.add(&user, number);
            }
            self.history.lock().unwrap().push(self.feed.in_force());
        }
    }

    /// The files are whole, and newer than what was acknowledged: each user's is as it was at the
    /// acknowledged place, or at one after it.
    fn check(&self, agent: &SshAgent) {
        // Reading a file fails the test where a line is not one of ours.
        let files = agent.in_files();
        let history = self.history.lock().unwrap();
        let acknowledged = self.feed.acknowledged();
        let seq =
            acknowledged.iter().map(|(told, _)| told.cursor.parse::<SshCursor>().unwrap().seq());
        let seq = usize::try_from(seq.max().unwrap_or(0)).unwrap();
        for user in (0..7).map(|number| format!("user{number}")) {
            let of = |set: &[(String, String)]| {
                set.iter().filter(|(name, _)| *name == user).cloned().collect::<Vec<_>>()
            };
            let mine = of(&files);
            let known = history[seq..].iter().any(|set| of(set) == mine);
            assert!(known, "{user} has {mine:?} after {seq} was acknowledged");
        }
    }
}

#[tokio::test]
async fn killed_at_random_moments_the_files_are_whole_and_what_was_acknowledged_is_true() {
    let feed = Feed::new();
    let served = feed.clone();
    let agent = beside(move |request: &Received| served.answer(request)).await;
    let random = Random::of_this_test();
    let history = Arc::new(Mutex::new(vec![Vec::new()]));
    let mut remembered = Remembered { feed: feed.clone(), history, random };
    let mut acknowledged = 0;
    for round in 0..60 {
        let process = agent.start_with(&["--limit", "3"]);
        let count = remembered.random.within(1..12);
        remembered.change(count);
        if round % 10 == 9 {
            feed.compact();
        }
        // The moment of the kill is what is random here; nothing waits for this time to pass.
        tokio::time::sleep(remembered.random.duration(LONGEST_PAUSE)).await;
        process.kill();
        remembered.check(&agent);
        acknowledged = feed.acknowledged().len().max(acknowledged);
    }
    assert!(acknowledged > 10, "it was always killed before its work");
    let _last = agent.start();
    feed.wait_for_match().await;
    assert_eq!(agent.in_files(), feed.in_force());
    let leftovers: Vec<_> =
        agent.names().into_iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(leftovers, [""; 0]);
}
