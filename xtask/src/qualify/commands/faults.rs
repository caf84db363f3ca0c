//! Brings the faults of a schedule about, each in a task of its own, so that they overlap.

use std::{sync::Arc, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use test_support::postgres::ClusterError;
use tokio::{task::JoinSet, time::Instant};

use super::{
    cluster::Backend,
    fault::Kind,
    history::{Fault, Program},
    schedule,
    supervisor::Supervised,
    world::{Site, World},
};
use crate::stop::{Stop, Stopped};

/// How long a fault looks for somebody to meet.
const MEETS_WITHIN: Duration = Duration::from_secs(10);

/// Between two looks for somebody to meet.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// How long the kill of an agent waits for its handler to run.
const WORKS_WITHIN: Duration = Duration::from_secs(2);

/// Between two looks at the handler's notes.
const BETWEEN_GLANCES: Duration = Duration::from_millis(2);

/// The hour that a clock is off.
const HOUR_SECONDS: i64 = 3_600;

/// The longest that a delayed piece waits.
const LONGEST_DELAY: Duration = Duration::from_millis(400);

/// Why the faults ended early: the world can't be mended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FaultError {
    #[error("{0}: PostgreSQL did not come back")]
    Cluster(&'static str, #[source] ClusterError),
    #[error("a fault panicked")]
    Panicked(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Brings all of them about and returns when each is over and lifted; all at once where the user
/// wants us to stop.
pub(crate) async fn bring_about(
    stop: &Stop,
    world: &Arc<World>,
    faults: Vec<schedule::Fault>,
) -> Result<(), FaultError> {
    let begin = Instant::now();
    let mut running = JoinSet::new();
    let all = async {
        for fault in faults {
            tokio::time::sleep_until(begin + fault.at).await;
            running.spawn(one(Arc::clone(world), fault));
            while let Some(ended) = running.try_join_next() {
                ended??;
            }
        }
        Ok::<_, FaultError>(())
    };
    let stopped = match stop.unless(all).await {
        Ok(begun) => begun.map(|()| false),
        Err(Stopped) => Ok(true),
    };
    if !matches!(stopped, Ok(false)) {
        world.lift_faults();
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    world.sites.iter().for_each(|site| site.proxy.handle().cut_no_answer());
    if stopped? { Err(Stopped.into()) } else { Ok(()) }
}

async fn one(world: Arc<World>, fault: schedule::Fault) -> Result<(), FaultError> {
    let began = world.recorder.now();
    let Some(target) = world.meets(&fault).await? else { return Ok(()) };
    let ended = world.recorder.now();
    let kind = fault.kind.name().to_owned();
    world.recorder.fault(Fault { kind, target, began, ended });
    Ok(())
}

impl World {
    /// The faults of a schedule that this machine can bring about: without libfaketime no clock is off.
    pub(crate) fn can_be_had(&self, mut schedule: Vec<schedule::Fault>) -> Vec<schedule::Fault> {
        let of_clocks = [Kind::ClockAhead, Kind::ClockBehind, Kind::PostgresClock];
        schedule.retain(|fault| self.faketime.is_some() || !of_clocks.contains(&fault.kind));
        schedule
    }

    /// Does it and lifts it, and says whom it met; none where nobody was there.
    async fn meets(&self, fault: &schedule::Fault) -> Result<Option<String>, FaultError> {
        Ok(match fault.kind {
            Kind::AgentKill | Kind::ListenerKill => match self.program(fault) {
                Some(program) => {
                    // Most handlers take a moment only: half of the kills look for one.
                    if fault.victim.is_multiple_of(2) {
                        self.works(program).await;
                    }
                    met(|| program.kill()).await.then(|| program.name())
                }
                None => None,
            },
            Kind::AgentPause | Kind::ListenerPause => match self.program(fault) {
                Some(program) => {
                    met(|| program.runs()).await;
                    let paused = program.pause(self.lasts(fault.lasts)).await;
                    paused.then(|| program.name())
                }
                None => None,
            },
            Kind::ClockAhead | Kind::ClockBehind => self.clock(fault).await,
            Kind::BackendKill => self.backend(fault, Signal::KILL).await,
            Kind::BackendPause => self.backend(fault, Signal::STOP).await,
            Kind::BackendTerminate => self.backend(fault, Signal::TERM).await,
            Kind::ProxyDelay
            | Kind::ProxyCut
            | Kind::ProxyCutAnswer
            | Kind::ProxyBlackHole
            | Kind::ProxyRefuse
            | Kind::ProxyHtml => self.network(fault).await,
            Kind::PostgresKill
            | Kind::PostgresPause
            | Kind::PostgresClock
            | Kind::Backup
            | Kind::Restore => {
                let done = self.postgres(fault).await;
                done.map_err(|error| FaultError::Cluster(fault.kind.name(), error))?
            }
        })
    }

    /// Returns when a handler of the agent runs, or when none did for a while.
    async fn works(&self, program: &Supervised) {
        let runs = async {
            while !self.runs_a_handler(program) {
                tokio::time::sleep(BETWEEN_GLANCES).await;
            }
        };
        let _ = tokio::time::timeout(WORKS_WITHIN, runs).await;
    }

    /// The agent or the listener that a fault meets; of both where it is no fault of either.
    fn program(&self, fault: &schedule::Fault) -> Option<&Supervised> {
        let fits = |program: &&Supervised| match fault.kind {
            Kind::AgentKill | Kind::AgentPause => matches!(program.program(), Program::Agent(_)),
            Kind::ListenerKill | Kind::ListenerPause => {
                matches!(program.program(), Program::Listener { .. })
            }
            _ => true,
        };
        chosen(&self.programs().filter(fits).collect::<Vec<_>>(), fault).copied()
    }

    /// A program is started again with a clock that is off, and later with the right one.
    async fn clock(&self, fault: &schedule::Fault) -> Option<String> {
        self.faketime.as_ref()?;
        let program = self.program(fault)?;
        let ahead = fault.kind == Kind::ClockAhead;
        program.restart_with_clock(if ahead { HOUR_SECONDS } else { -HOUR_SECONDS });
        self.lasts(fault.lasts).await;
        program.restart_with_clock(0);
        Some(program.name())
    }

    /// A process of PostgreSQL that works for one of ours.
    async fn backend(&self, fault: &schedule::Fault, signal: Signal) -> Option<String> {
        let until = Instant::now() + MEETS_WITHIN;
        while Instant::now() < until {
            let backends = self.postgres.lock().await.backends().await;
            let met = chosen(&backends, fault);
            if let Some(Backend { pid, role }) = met
                && let Some(id) = Pid::from_raw(*pid)
                && kill_process(id, signal).is_ok()
            {
                if signal == Signal::STOP {
                    self.lasts(fault.lasts).await;
                    let _ = kill_process(id, Signal::CONT);
                }
                return Some(format!("{role} {pid}"));
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        None
    }

    /// The network between a Runtime and the listeners of its Site.
    async fn network(&self, fault: &schedule::Fault) -> Option<String> {
        let site: &Site = chosen(&self.sites, fault)?;
        let proxy = site.proxy.handle();
        let lasts = || self.lasts(fault.lasts);
        let hits = || {
            let counts = proxy.counts();
            match fault.kind {
                Kind::ProxyDelay => counts.delayed,
                Kind::ProxyCut => counts.cut,
                Kind::ProxyCutAnswer => counts.answers_cut,
                Kind::ProxyBlackHole => counts.held,
                Kind::ProxyRefuse => counts.refused,
                _ => counts.pages,
            }
        };
        let before = hits();
        // What stays, stays until it has hit something.
        let lasts = async || {
            lasts().await;
            met(|| hits() > before).await;
        };
        match fault.kind {
            Kind::ProxyDelay => {
                proxy.delay(LONGEST_DELAY);
                lasts().await;
                proxy.delay(Duration::ZERO);
            }
            Kind::ProxyCut => proxy.cut_all(),
            Kind::ProxyCutAnswer => proxy.cut_next_answer(),
            Kind::ProxyBlackHole => {
                proxy.black_hole(true);
                lasts().await;
                proxy.black_hole(false);
            }
            Kind::ProxyRefuse => {
                proxy.refuse(true);
                proxy.cut_all();
                lasts().await;
                proxy.refuse(false);
            }
            _ => {
                proxy.html_503(true);
                lasts().await;
                proxy.html_503(false);
            }
        }
        // An answer to cut has still to come.
        if !met(|| hits() > before).await {
            return None;
        }
        Some(site.name.to_string())
    }

    /// The whole server; one fault after the other.
    async fn postgres(&self, fault: &schedule::Fault) -> Result<Option<String>, ClusterError> {
        let mut postgres = self.postgres.lock().await;
        let done = match fault.kind {
            Kind::PostgresKill => postgres.kill().await.map(|()| true)?,
            Kind::PostgresPause => {
                postgres.pause(self.lasts(fault.lasts)).await;
                true
            }
            Kind::PostgresClock => {
                let ahead = fault.victim.is_multiple_of(2);
                let seconds = if ahead { HOUR_SECONDS } else { -HOUR_SECONDS };
                let done = postgres.set_clock(seconds).await?;
                // Others may do what they want to it meanwhile.
                drop(postgres);
                self.lasts(fault.lasts).await;
                self.postgres.lock().await.set_clock(0).await?;
                done
            }
            Kind::Backup => postgres.back_up().await.map(|()| true)?,
            _ => postgres.restore().await?,
        };
        Ok(done.then(|| "PostgreSQL".to_owned()))
    }
}

/// Waits for somebody to meet; false where nobody came.
async fn met(mut look: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + MEETS_WITHIN;
    while !look() {
        if Instant::now() > until {
            return false;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    true
}

/// The one of some that a fault meets.
fn chosen<'a, T>(some: &'a [T], fault: &schedule::Fault) -> Option<&'a T> {
    let count = u64::try_from(some.len()).ok().filter(|count| *count > 0)?;
    some.get(usize::try_from(fault.victim % count).ok()?)
}
