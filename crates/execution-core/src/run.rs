//! A Run with its Attempts.

use chrono::{DateTime, Datelike, SecondsFormat, Utc};
use ring::digest::{Context, SHA256};

use crate::{AttemptNumber, Invalid, Material, MemberId, Place, ProjectId, Repository, RunId};

/// What is accepted: all of it is one decision of the control plane, and none of it changes later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// The Run.
    pub id: RunId,
    /// The Project that it belongs to.
    pub project: ProjectId,
    /// The member whose Run it is, and whose rights it has.
    pub member: MemberId,
    /// Where it executes.
    pub place: Place,
    /// From when on it may do nothing but recover.
    pub deadline: Deadline,
    /// The repository that it works on.
    pub repository: Repository,
    /// What it is to do.
    pub material: Material,
}

/// When the work of a Run has to be done, by the database's clock: in the years 1970 to 9999, which
/// have one spelling on all sides, and to the microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(DateTime<Utc>);

impl Deadline {
    /// Takes a time; what is below a microsecond is cut off.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn new(time: DateTime<Utc>) -> Result<Self, Invalid> {
        // The way through the number takes a leap second for the second after it.
        DateTime::from_timestamp_micros(time.timestamp_micros())
            .filter(|time| (1970..=9999).contains(&time.year()))
            .map(Self)
            .ok_or(Invalid("a deadline lies in the years 1970 to 9999"))
    }

    /// Takes a time in RFC 3339.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let time = DateTime::parse_from_rfc3339(text);
        let time = time.map_err(|_| {
            Invalid("a deadline is a time in RFC 3339, such as 2030-01-01T00:00:00Z")
        })?;
        Self::new(time.with_timezone(&Utc))
    }

    /// The time.
    #[must_use]
    pub fn time(self) -> DateTime<Utc> {
        self.0
    }

    /// Whether it has passed at a time: from its very moment on.
    #[must_use]
    pub fn has_passed(self, now: DateTime<Utc>) -> bool {
        self.0 <= now
    }
}

/// An accepted Run as it is now. Times are the database's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What was accepted.
    pub accepted: NewRun,
    /// When.
    pub accepted_at: DateTime<Utc>,
    /// When it was cancelled, if it was.
    pub cancelled_at: Option<DateTime<Utc>>,
    /// Its Attempts in order: the first is number 1, and none is left out.
    pub attempts: Vec<Attempt>,
}

/// A try to execute a Run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its place among the Attempts of the Run.
    pub number: AttemptNumber,
    /// When it was submitted.
    pub submitted_at: DateTime<Utc>,
    /// Since when it is over, if it is.
    pub final_at: Option<DateTime<Utc>>,
}

/// What has become of a Run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It may be executed.
    Accepted,
    /// It may do nothing any more.
    Cancelled,
}

/// What has become of an Attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptState {
    /// It is under way, or will be.
    Submitted,
    /// It is over.
    Final,
}

impl RunState {
    /// `accepted` or `cancelled`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Cancelled => "cancelled",
        }
    }
}

impl AttemptState {
    /// `submitted` or `final`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Final => "final",
        }
    }
}

impl Attempt {
    /// What has become of it.
    #[must_use]
    pub fn state(&self) -> AttemptState {
        match self.final_at {
            None => AttemptState::Submitted,
            Some(_) => AttemptState::Final,
        }
    }
}

impl Run {
    /// What has become of it.
    #[must_use]
    pub fn state(&self) -> RunState {
        match self.cancelled_at {
            None => RunState::Accepted,
            Some(_) => RunState::Cancelled,
        }
    }

    /// An Attempt by its number.
    #[must_use]
    pub fn attempt(&self, number: AttemptNumber) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.number == number)
    }

    /// The newest Attempt.
    #[must_use]
    pub fn latest_attempt(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// SHA-256 over everything that there is to show of the Run, as 64 hexadecimal characters: the
    /// same for the same Run, another one as soon as anything of it is different. The time of the
    /// reading is no part of it. On the wire it is the `ETag`.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let NewRun { id, project, member, place, deadline, repository, material } = &self.accepted;
        let mut fields = Fields::new();
        for text in [
            id.as_str(),
            project.as_str(),
            member.as_str(),
            place.site.as_str(),
            place.environment.as_str(),
            repository.instance.as_str(),
            &repository.project.get().to_string(),
            repository.path.as_str(),
            repository.reference.as_str(),
            repository.commit.as_str(),
            material.as_str(),
            &spelled(Some(deadline.time())),
            &spelled(Some(self.accepted_at)),
            &spelled(self.cancelled_at),
        ] {
            fields.add(text);
        }
        for attempt in &self.attempts {
            fields.add(&attempt.number.get().to_string());
            fields.add(&spelled(Some(attempt.submitted_at)));
            fields.add(&spelled(attempt.final_at));
        }
        fields.finish()
    }
}

/// A time to the microsecond; nothing for one that is not.
fn spelled(time: Option<DateTime<Utc>>) -> String {
    time.map(|time| time.to_rfc3339_opts(SecondsFormat::Micros, true)).unwrap_or_default()
}

/// A digest over texts with their lengths, so that no two lists of texts can be read as each other.
struct Fields(Context);

impl Fields {
    fn new() -> Self {
        let mut fields = Self(Context::new(&SHA256));
        fields.add("site-control/run/1");
        fields
    }

    fn add(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }

    fn finish(self) -> String {
        hex::encode(self.0.finish())
    }
}
