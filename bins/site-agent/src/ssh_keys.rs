//! The loop of an SSH agent: pull the changes of the Site's keys, bring them into the files that sshd
//! reads, say what is durable.
//!
//! What a removal promises does not depend on this agent: each line that it writes ends by itself, by
//! a lease that the Site API gave with what was in force at that moment. A lease counts only at the
//! head of the feed: on the way there, changes are written under the last lease that was read at the
//! head, because a later change may be the removal of what an earlier one added.
//!
//! | File | What happens there |
//! |---|---|
//! | `folder`, `file` | the files, and that nothing leads a write elsewhere |
//! | `state` | where the agent is, written after the files are durable |
//! | `changes` | a page of changes is applied, and failures are tried again |
//! | `snapshot` | everything is written anew, when told or when the agent does not know its place |
//! | `refresh` | the leases of all files are renewed, some files at a time |
//! | `acknowledge` | what is durable is told, and what the files hold is attested |
//! | `failures` | what could not be applied |
//! | `tell` | what is logged |
//!
//! Every trouble is answered with jittered back-off. Nothing that the Site API says ends the agent.

mod acknowledge;
mod changes;
mod failures;
mod file;
mod folder;
#[doc(hidden)]
pub(crate) mod parsers;
mod refresh;
mod snapshot;
mod state;
mod tell;

use std::{convert::Infallible, io, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use service_kit::error_chain;
use site_client::{Backoff, CallError, RandomSource, SiteClient, SshLease};
use tokio::time::Instant;

use crate::{exit::Exit, stop::Stop};

use refresh::Pass;
use state::Position;
use tell::{tell_call, tell_lease, tell_mending};

pub(crate) use folder::{Folder, FolderError};
pub(crate) use state::{StateError, StateFile};

/// How the loop works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The most changes in one answer.
    pub(crate) limit: u32,
    /// How long the Site API may wait for a change.
    pub(crate) wait: Duration,
    /// How often the files are read back and attested.
    pub(crate) attest_every: Duration,
}

/// An SSH agent.
pub(crate) struct SshKeys {
    client: SiteClient,
    folder: Folder,
    state: StateFile,
    pace: Pace,
    stop: Stop,
    backoff: Backoff,
    /// The newest lease, and when it came: the database's clock.
    lease: Option<(SshLease, Instant)>,
    /// The alarm that the lease is over is raised.
    lease_over: bool,
    /// Whether the last page ended at the head.
    at_head: bool,
    /// Something is durable, or failed, that is not acknowledged.
    unacknowledged: bool,
    /// When the files are to be attested next.
    attest_at: Instant,
    /// When failures are to be tried again.
    again_at: Instant,
    /// When everything was written anew because the files were not what they should be.
    mended_at: Option<Instant>,
    pass: Option<Pass>,
    /// Files may say a later end than the lease: a pass is to begin.
    to_renew_all: bool,
    /// The alarm that files are past their lease is raised.
    leases_late: bool,
}

/// Why the work does not simply go on.
#[derive(Debug)]
enum Break {
    /// The agent ends.
    End(Exit),
    /// Trouble of this machine, such as a full disk.
    Trouble(io::Error),
    /// A call failed.
    Call(&'static str, CallError),
    /// Everything is to be written anew.
    Snapshot(Why),
}

/// Why everything is written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The agent does not know its place.
    NoState,
    /// The agent that ran before refused what this one may take.
    Refused,
    /// The Site API does not know the agent's place, or has not kept what follows it.
    Place,
    /// The files are not what is in force.
    Mismatch,
    /// Somebody has changed a file of ours.
    Changed,
    /// More failed than is kept.
    Failures,
}

impl From<io::Error> for Break {
    fn from(error: io::Error) -> Self {
        Self::Trouble(error)
    }
}

impl SshKeys {
    pub(crate) fn new(
        client: SiteClient,
        folder: Folder,
        state: StateFile,
        pace: Pace,
        random: RandomSource,
        stop: Stop,
    ) -> Self {
        let now = Instant::now();
        Self {
            client,
            folder,
            state,
            pace,
            stop,
            backoff: Backoff::new(random),
            lease: None,
            lease_over: false,
            at_head: false,
            unacknowledged: true,
            attest_at: now,
            again_at: now,
            mended_at: None,
            pass: None,
            to_renew_all: false,
            leases_late: false,
        }
    }

    /// Works from `position`, where there is one, until something ends it, and says what that was.
    pub(crate) async fn run(mut self, mut position: Option<Position>) -> Exit {
        let mut why = match &position {
            None => Some(Why::NoState),
            Some(position) if position.failures.have_a_refusal() => Some(Why::Refused),
            Some(_) => None,
        };
        let seq = position.as_ref().map(|position| position.cursor.seq());
        tracing::info!(ssh.seq = seq, "ssh_keys.started");
        loop {
            let broken = match (why, &mut position) {
                (None, Some(position)) => match self.work(position).await {
                    Ok(never) => match never {},
                    Err(broken) => broken,
                },
                (reason, _) => match self.snapshot(reason.unwrap_or(Why::NoState)).await {
                    Ok(taken) => {
                        (position, why) = (Some(taken), None);
                        continue;
                    }
                    Err(broken) => broken,
                },
            };
            let advice = match broken {
                Break::End(exit) => return exit,
                Break::Trouble(error) => {
                    if let Err(Break::End(exit)) = self.hold_folder() {
                        return exit;
                    }
                    let alarm = "ssh_files_not_written";
                    let error = error_chain(&error);
                    tracing::error!(alarm.name = alarm, error, "ssh_keys.own_trouble");
                    None
                }
                Break::Call(call, error) => {
                    if tell_call(call, &error) {
                        why = Some(Why::Place);
                    }
                    error.retry_after()
                }
                Break::Snapshot(reason) => {
                    tell_mending(reason);
                    why = Some(reason);
                    None
                }
            };
            let time = self.backoff.next(advice);
            if !self.stop.sleep(time).await {
                return self.ending();
            }
        }
    }

    async fn work(&mut self, position: &mut Position) -> Result<Infallible, Break> {
        loop {
            self.try_failures_again(position).await?;
            self.pull(position).await?;
            self.refresh(position).await?;
            self.acknowledge(position).await?;
        }
    }

    /// How long the next poll may wait.
    fn wait(&self, position: &Position) -> Duration {
        let now = Instant::now();
        let renewing = self.pass.is_some() || self.to_renew_all;
        if !self.at_head || self.unacknowledged || renewing || self.attest_at <= now {
            return Duration::ZERO;
        }
        let quarter = self.lease.map_or(Duration::ZERO, |(lease, _)| {
            (lease.until - lease.server_time).to_std().unwrap_or_default() / 4
        });
        let mut wait = self.pace.wait.min(quarter).min(self.attest_at - now);
        if !position.failures.is_empty() {
            wait = wait.min(self.again_at.saturating_duration_since(now));
        }
        Duration::from_secs(wait.as_secs().max(1))
    }

    /// Takes the lease of an answer that came just now.
    fn learn(&mut self, lease: SshLease) {
        self.lease = Some((lease, Instant::now()));
        let over = lease.is_over();
        if std::mem::replace(&mut self.lease_over, over) == over {
            return;
        }
        tell_lease(lease);
    }

    /// The time on the database's clock, and half of the time that a lease is good for.
    fn server_now(&self) -> Option<(DateTime<Utc>, TimeDelta)> {
        let (lease, came_at) = self.lease?;
        let since = TimeDelta::from_std(came_at.elapsed()).ok()?;
        let now = lease.server_time.checked_add_signed(since)?;
        Some((now, (lease.until - lease.server_time) / 2))
    }

    /// Everything is to be written anew because the files are not what they should be: once in the
    /// time between two attestations, so that what can't be mended is not mended again and again.
    fn mend(&mut self, why: Why) -> Result<(), Break> {
        let now = Instant::now();
        self.attest_at = now + self.pace.attest_every;
        if self.mended_at.is_some_and(|at| now < at + self.pace.attest_every) {
            tracing::error!(
                alarm.name = "ssh_set_mismatch",
                detail = "the files are not what is in force, also after they were written anew",
                "ssh_keys.not_mended"
            );
            return Ok(());
        }
        self.mended_at = Some(now);
        Err(Break::Snapshot(why))
    }

    /// Ends the work where another folder stands at the path of this one: sshd reads that one, and a
    /// start opens it.
    fn hold_folder(&self) -> Result<(), Break> {
        if self.folder.is_in_place()? {
            return Ok(());
        }
        tracing::error!(
            detail = "something else stands at the path of the folder that was opened at the start",
            "ssh_keys.folder_replaced"
        );
        Err(Break::End(Exit::Internal))
    }

    /// Lets others work for a moment, and ends the work where that is asked for.
    async fn breathe(&mut self) -> Result<(), Break> {
        tokio::task::yield_now().await;
        if self.stop.is_asked() { Err(Break::End(self.ending())) } else { Ok(()) }
    }

    fn ending(&self) -> Exit {
        if self.stop.is_asked_now() { Exit::Hurried } else { Exit::Stopped }
    }
}
