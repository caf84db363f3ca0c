//! Propagation that goes on: the lease, hints, ticks.

use std::{convert::Infallible, future::Future};

use database::{Hint, Listener};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{Lease, Propagator, Watched};
use crate::{PropagateError, announcer::CHANGED_CHANNEL};

/// Whether this process is the one that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// It has the lease with this fence.
    Leading {
        /// The fence.
        fence: i64,
    },
    /// Somebody else has it.
    Standby,
}

/// What [`Propagator::run`] tells as it goes on.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The lease was taken, or is somebody else's.
    Leadership(Leadership),
    /// So many changes were written.
    Propagated(u64),
    /// So many changes were taken away.
    Compacted(u64),
    /// How far the agent is.
    Watched(Watched),
    /// Everything that was tried in this round worked.
    Well,
    /// Something failed, and is tried again.
    Trouble(&'a PropagateError),
}

/// When the next of each is due.
struct Schedule {
    renew: Instant,
    watch: Instant,
    compact: Instant,
}

impl Propagator {
    /// Propagates until `stop` ends, and then gives the lease back. `tell` hears of everything and must
    /// be quick.
    ///
    /// Hints of changed members make it fast, and a tick finds what a lost one missed. What fails is
    /// tried again at the next tick.
    pub async fn run(&self, stop: impl Future<Output = ()>, tell: impl Fn(Progress<'_>)) {
        let stirred = Notify::new();
        let listener = Listener::new(self.store.pool().url(), CHANGED_CHANNEL);
        let listening = listener.run(|hint| {
            if hint != Hint::Lost {
                stirred.notify_one();
            }
        });
        let mut lease = None;
        // What is under way when it stops is cut: each statement is whole or was never there.
        tokio::select! {
            () = stop => {}
            () = listening => {}
            never = self.rounds(&mut lease, &stirred, &tell) => match never {},
        }
        if let Some((lease, _)) = lease
            && let Err(error) = self.release(lease).await
        {
            // It ends by itself.
            tell(Progress::Trouble(&error));
        }
    }

    async fn rounds(
        &self,
        lease: &mut Option<(Lease, Schedule)>,
        stirred: &Notify,
        tell: &impl Fn(Progress<'_>),
    ) -> Infallible {
        let mut told = None;
        let mut tell_leadership = |lease: &Option<(Lease, Schedule)>| {
            let leadership = match lease {
                Some((lease, _)) => Leadership::Leading { fence: lease.fence() },
                None => Leadership::Standby,
            };
            if told.replace(leadership) != Some(leadership) {
                tell(Progress::Leadership(leadership));
            }
        };
        loop {
            let next = Instant::now() + self.limits.tick;
            let tried = match self.hold(lease).await {
                Ok(()) => {
                    // Before the work that it may do now.
                    tell_leadership(lease);
                    match lease {
                        Some((lease, schedule)) => self.round(*lease, schedule, tell).await,
                        None => Ok(()),
                    }
                }
                Err(error) => Err(error),
            };
            match tried {
                Ok(()) => tell(Progress::Well),
                Err(error) => {
                    if matches!(error, PropagateError::LeaseLost) {
                        *lease = None;
                        tell_leadership(lease);
                    }
                    tell(Progress::Trouble(&error));
                }
            }
            if lease.is_some() {
                tokio::select! {
                    () = stirred.notified() => {}
                    () = sleep_until(next) => {}
                }
            } else {
                // Who has no lease has nothing to hurry for.
                sleep_until(next).await;
            }
        }
    }

    /// Takes the lease where nobody has it, and keeps it where it is due.
    async fn hold(&self, held: &mut Option<(Lease, Schedule)>) -> Result<(), PropagateError> {
        let now = Instant::now();
        let renew = now + self.limits.lease / 3;
        match held {
            Some((lease, schedule)) if schedule.renew <= now => {
                self.renew(*lease).await?;
                schedule.renew = renew;
            }
            Some(_) => {}
            None => {
                let lease = self.acquire().await?;
                let schedule = Schedule { renew, watch: now, compact: now };
                *held = lease.map(|lease| (lease, schedule));
            }
        }
        Ok(())
    }

    /// One round with the lease: whatever is due.
    async fn round(
        &self,
        lease: Lease,
        schedule: &mut Schedule,
        tell: &impl Fn(Progress<'_>),
    ) -> Result<(), PropagateError> {
        let now = Instant::now();
        let written = self.propagate(lease).await?;
        if written > 0 {
            tell(Progress::Propagated(written));
        }
        if schedule.watch <= now {
            tell(Progress::Watched(self.watch(lease).await?));
            schedule.watch = now + self.limits.watch;
        }
        if schedule.compact <= now {
            let gone = self.compact(lease).await?;
            if gone > 0 {
                tell(Progress::Compacted(gone));
            }
            self.prune_events(lease).await?;
            schedule.compact = now + self.limits.compact;
        }
        Ok(())
    }
}
