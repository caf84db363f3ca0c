//! The current authority of a Run: may this Attempt do this action now?
//!
//! It is decided from plain values, in two steps, so that nobody is asked about what is refused
//! anyway: [`before_asking`] decides what is known without the member's Project, and gives the one
//! question that is left; [`Question::decide`] takes its answer. Only both together make an
//! [`Authorised`]. Nothing of it is kept: the next action is decided anew.
//!
//! The refusals come in the order of [`Refusal`]: where several things are wrong, the first of them
//! is told.

use chrono::{DateTime, Utc};

use crate::{Action, AttemptNumber, MemberId, Place, ProjectId, Run, RunId, SiteId};

/// What a caller wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Where the caller is, which is known from who it is and never from what it says.
    pub place: Place,
    /// The Run.
    pub run: RunId,
    /// The Attempt that it executes.
    pub attempt: AttemptNumber,
    /// What it wants to do.
    pub action: Action,
}

/// What is known of the binding of a member to a native account of a Site, by its own context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The Site.
    pub site: SiteId,
    /// The member.
    pub member: MemberId,
    /// Since when it is no longer retained, if it is not.
    pub released_at: Option<DateTime<Utc>>,
}

/// The question that is left: has the member the permission in the Project, now? Only
/// [`before_asking`] makes one.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "without an answer nothing is authorised"]
pub struct Question {
    granted: Authorised,
    member: MemberId,
    project: ProjectId,
}

/// What was answered, or that nothing was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The member has the permission.
    Allowed,
    /// The member has it not.
    Denied,
    /// Nobody answered in time, or nothing that counts as an answer.
    CouldNotAsk,
}

/// That an Attempt may do an action at the moment of the decision, and no longer. Only
/// [`Question::decide`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorised {
    run: RunId,
    attempt: AttemptNumber,
    action: Action,
}

/// Why an Attempt may not do an action now. The order is that in which they are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// There is no such Run in the caller's Site and environment. What other places have is none of
    /// its business.
    #[error("there is no such Run here")]
    NotFound,
    /// The Run was cancelled: it may do nothing any more.
    #[error("the Run was cancelled")]
    Cancelled,
    /// The Run has no such Attempt.
    #[error("the Run has no such Attempt")]
    AttemptUnknown,
    /// A later Attempt was submitted: this one may do nothing any more.
    #[error("the Attempt is not the latest one, which is {}", latest.get())]
    AttemptNotLatest {
        /// The one that was submitted last.
        latest: AttemptNumber,
    },
    /// The Attempt is over.
    #[error("the Attempt is over")]
    AttemptFinal,
    /// The deadline has passed, and the action is none of recovery.
    #[error("the deadline of the Run has passed")]
    DeadlinePassed,
    /// The member has no native account at the Site any more, or has none yet.
    #[error("no binding of the member to an account of the Site is retained")]
    BindingNotRetained,
    /// The member has not the permission in the Project of the Run.
    #[error("the member has not the permission that the action needs")]
    Denied,
    /// Nobody said whether the member has the permission. It is no yes, and no lasting no.
    #[error("whether the member has the permission could not be asked")]
    CouldNotAsk,
}

/// Decides what is known without asking about the member's permission.
///
/// `run` is the Run that was read for the request, `binding` that of its member at its Site, `now`
/// the database's time at the reading. What is given for another Run, Site or member counts as
/// nothing.
///
/// # Errors
///
/// The first of [`Refusal`] that is true, up to [`Refusal::BindingNotRetained`].
pub fn before_asking(
    request: &Request,
    run: Option<&Run>,
    binding: Option<&Binding>,
    now: DateTime<Utc>,
) -> Result<Question, Refusal> {
    let run =
        run.filter(|run| run.accepted.id == request.run && run.accepted.place == request.place);
    let run = run.ok_or(Refusal::NotFound)?;
    if run.cancelled_at.is_some() {
        return Err(Refusal::Cancelled);
    }
    check_attempt(run, request.attempt)?;
    if run.accepted.deadline.has_passed(now) && !request.action.is_recovery() {
        return Err(Refusal::DeadlinePassed);
    }
    if !binding.is_some_and(|binding| is_retained_for(binding, run)) {
        return Err(Refusal::BindingNotRetained);
    }
    Ok(Question {
        granted: Authorised {
            run: request.run.clone(),
            attempt: request.attempt,
            action: request.action,
        },
        member: run.accepted.member.clone(),
        project: run.accepted.project.clone(),
    })
}

fn check_attempt(run: &Run, number: AttemptNumber) -> Result<(), Refusal> {
    let attempt = run.attempt(number).ok_or(Refusal::AttemptUnknown)?;
    match run.latest_attempt() {
        Some(latest) if latest.number != number => {
            Err(Refusal::AttemptNotLatest { latest: latest.number })
        }
        _ if attempt.final_at.is_some() => Err(Refusal::AttemptFinal),
        _ => Ok(()),
    }
}

fn is_retained_for(binding: &Binding, run: &Run) -> bool {
    binding.site == run.accepted.place.site
        && binding.member == run.accepted.member
        && binding.released_at.is_none()
}

impl Question {
    /// Whose permission it is.
    #[must_use]
    pub fn member(&self) -> &MemberId {
        &self.member
    }

    /// In which Project.
    #[must_use]
    pub fn project(&self) -> &ProjectId {
        &self.project
    }

    /// Which permission.
    #[must_use]
    pub fn permission(&self) -> &'static str {
        self.granted.action.permission()
    }

    /// Decides with the answer. It uses the question up: the next action is decided anew.
    ///
    /// # Errors
    ///
    /// [`Refusal::Denied`] or [`Refusal::CouldNotAsk`].
    pub fn decide(self, answer: Answer) -> Result<Authorised, Refusal> {
        match answer {
            Answer::Allowed => Ok(self.granted),
            Answer::Denied => Err(Refusal::Denied),
            Answer::CouldNotAsk => Err(Refusal::CouldNotAsk),
        }
    }
}

impl Authorised {
    /// The Run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Its Attempt.
    #[must_use]
    pub fn attempt(&self) -> AttemptNumber {
        self.attempt
    }

    /// What it may do.
    #[must_use]
    pub fn action(&self) -> Action {
        self.action
    }
}
