//! Which grants are in force while their file changes under a running process.
//!
//! It reads no file and no clock: whoever watches the file tells what was found there, and when.
//! An invalid file may hold a revocation that can't be read, so it must not keep the last good
//! grants for ever; nor must a slip of the pen lock every caller out at once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};

use crate::{Grants, GrantsErrors};

/// So many mistakes of a file are told in an alarm.
const TOLD_MISTAKES: usize = 5;

/// What a look at the place of the grants file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The file's text, valid or not.
    Text(String),
    /// No file.
    Absent,
    /// A file that can't be used whatever it holds, and why.
    Unusable(String),
}

/// The grants in force and what an operator should know.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The grants by which bearers are checked; without them every bearer is unavailable, which is
    /// not the same as refused.
    pub grants: Option<Arc<Grants>>,
    /// What is wrong with the file. It changes only where the standing does.
    pub alarm: Option<String>,
}

/// Follows a grants file.
#[derive(Debug)]
pub struct LiveGrants {
    last_good_for: Duration,
    standing: Standing,
    /// The text of the grants in force, where their file is valid.
    valid: Option<String>,
    /// Since when the file has been invalid without a break.
    invalid_since: Option<Instant>,
}

impl LiveGrants {
    /// Follows a file of which nothing is known yet, as if it were absent. Grants stay in force for
    /// `last_good_for` after their file became invalid.
    #[must_use]
    pub fn new(last_good_for: Duration) -> Self {
        Self { last_good_for, standing: Standing::default(), valid: None, invalid_since: None }
    }

    /// Takes what was found at `at`, with the time of day `now` that decides which grants of a file
    /// are active, and says what is in force from then on.
    ///
    /// A valid file replaces the grants whole. An absent one ends them at once. An invalid one keeps
    /// them until it has been invalid for `last_good_for`, however often it changes meanwhile.
    pub fn observe(&mut self, found: Found, at: Instant, now: DateTime<Utc>) -> &Standing {
        match found {
            Found::Text(text) if self.valid.as_ref() == Some(&text) => {}
            Found::Text(text) => match Grants::parse(&text, now) {
                Ok(grants) => {
                    self.valid = Some(text);
                    self.invalid_since = None;
                    self.standing = Standing { grants: Some(Arc::new(grants)), alarm: None };
                }
                Err(errors) => self.invalid(&summary(&errors), at),
            },
            Found::Unusable(reason) => self.invalid(&reason, at),
            Found::Absent => {
                self.valid = None;
                self.invalid_since = None;
                self.standing =
                    Standing { grants: None, alarm: Some("the file does not exist".to_owned()) };
            }
        }
        &self.standing
    }

    /// What is in force.
    #[must_use]
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    fn invalid(&mut self, reason: &str, at: Instant) {
        self.valid = None;
        let since = *self.invalid_since.get_or_insert(at);
        if at.saturating_duration_since(since) >= self.last_good_for {
            self.standing.grants = None;
        }
        // No remaining time: an alarm whose reason changes is told again.
        let consequence = match &self.standing.grants {
            Some(_) => format!(
                "the last good grants stay in force for {} s at most",
                self.last_good_for.as_secs()
            ),
            None => "native bearers are unavailable".to_owned(),
        };
        self.standing.alarm = Some(format!("{reason}; {consequence}"));
    }
}

fn summary(errors: &GrantsErrors) -> String {
    let mistakes = errors.mistakes();
    let told = &mistakes[..mistakes.len().min(TOLD_MISTAKES)];
    match mistakes.len() - told.len() {
        0 => told.join("; "),
        more => format!("{}; and {more} more", told.join("; ")),
    }
}
