//! From the first signal to the exit code.
//!
//! A process runs its tasks until a signal or the end of one of them. Then it is *draining*:
//! everybody who holds a [`Shutdown`] knows, the listeners stop accepting, requests finish, and
//! the process ends when its tasks have, or when the grace period is over. A second signal ends it
//! at once.

use std::{collections::HashMap, future::Future, io, pin::Pin, time::Duration};

use futures_util::{
    Stream, StreamExt,
    stream::{self, Fuse},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    task::{Id, JoinError, JoinSet},
    time::sleep,
};

/// How long requests may take to finish, where nothing else is set.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(20);

/// The stop signals of this process as they come.
pub type Signals = Pin<Box<dyn Stream<Item = ()> + Send>>;

/// Tells everybody who holds it that the process is stopping.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

/// Begins the draining. Dropping it begins it as well.
#[derive(Debug)]
pub struct Trigger(watch::Sender<bool>);

/// The tasks of a process, and the order in which it stops.
pub struct Lifecycle {
    trigger: Trigger,
    shutdown: Shutdown,
    grace: Duration,
    main: Tasks,
    support: Tasks,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// A signal came and everything finished. Exit code 0.
    Clean,
    /// A task panicked, or ended although nobody asked it to. Exit code 70 (`EX_SOFTWARE`).
    TaskFailed(&'static str),
    /// Something did not finish within the grace period and was cut. Exit code 75
    /// (`EX_TEMPFAIL`).
    GraceExceeded,
    /// A second signal came. Exit code 130.
    Forced,
}

impl Shutdown {
    /// A handle and what triggers it.
    #[must_use]
    pub fn new() -> (Trigger, Self) {
        let (sender, receiver) = watch::channel(false);
        (Trigger(sender), Self(receiver))
    }

    /// Whether the process is stopping.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until the process is stopping.
    pub async fn draining(&self) {
        // An error means that the trigger is gone, which is the same news.
        let _ = self.0.clone().wait_for(|draining| *draining).await;
    }
}

impl Trigger {
    /// Begins the draining.
    pub fn drain(&self) {
        self.0.send_replace(true);
    }
}

impl Lifecycle {
    /// A process without tasks yet.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        let (trigger, shutdown) = Shutdown::new();
        Self { trigger, shutdown, grace, main: Tasks::default(), support: Tasks::default() }
    }

    /// The handle to give to listeners, handlers and tasks.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// Runs a task that ends when the process drains, and is waited for. Its end before that, or a
    /// panic at any time, stops the process with a failing code.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.main.spawn(name, task);
    }

    /// Runs a task that never ends by itself, such as the admin listener. It is stopped after
    /// everything else has finished.
    pub fn spawn_support(
        &mut self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.support.spawn(name, task);
    }

    /// Runs until the end. Tasks that are left are cut when this returns.
    ///
    /// Leave by `Runtime::shutdown_background` or [`std::process::exit`] afterwards: the plain end
    /// of a runtime waits for blocking work without a bound.
    pub async fn run(mut self, signals: Signals) -> Ending {
        let mut signals = signals.fuse();
        let failed = tokio::select! {
            Some(()) = signals.next() => None,
            Some(end) = self.main.next() => Some(end.name),
            Some(end) = self.support.next() => Some(end.name),
            else => None,
        };
        tracing::info!(
            task.failed = failed,
            drain.grace_ms = millis(self.grace),
            "service.draining"
        );
        self.trigger.drain();
        let drained = self.drain(&mut signals).await;
        let ending = match (drained, failed) {
            (Ending::Forced, _) => Ending::Forced,
            (_, Some(task)) => Ending::TaskFailed(task),
            (drained, None) => drained,
        };
        tracing::info!(exit.code = ending.exit_code(), exit.ending = ?ending, "service.stopped");
        ending
    }

    async fn drain(&mut self, signals: &mut Fuse<Signals>) -> Ending {
        let over = sleep(self.grace);
        tokio::pin!(over);
        let mut failed = None;
        loop {
            tokio::select! {
                Some(()) = signals.next() => return Ending::Forced,
                end = self.main.next() => match end {
                    Some(end) if end.panicked => failed = Some(end.name),
                    Some(_) => {}
                    None => return failed.map_or(Ending::Clean, Ending::TaskFailed),
                },
                Some(end) = self.support.next() => {
                    if end.panicked {
                        failed = Some(end.name);
                    }
                }
                () = &mut over => return failed.map_or(Ending::GraceExceeded, Ending::TaskFailed),
            }
        }
    }
}

impl Ending {
    /// The code to exit with.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::TaskFailed(_) => 70,
            Self::GraceExceeded => 75,
            Self::Forced => 130,
        }
    }
}

/// `SIGTERM` and `SIGINT` of this process. From this call on they don't kill it any more.
///
/// # Errors
///
/// When the handlers can't be installed.
pub fn process_signals() -> io::Result<Signals> {
    let terminate = signal(SignalKind::terminate())?;
    let interrupt = signal(SignalKind::interrupt())?;
    Ok(Box::pin(stream::unfold((terminate, interrupt), |(mut terminate, mut interrupt)| async {
        tokio::select! {
            signal = terminate.recv() => signal?,
            signal = interrupt.recv() => signal?,
        }
        Some(((), (terminate, interrupt)))
    })))
}

#[derive(Default)]
struct Tasks {
    set: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

struct TaskEnd {
    name: &'static str,
    panicked: bool,
}

impl Tasks {
    fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let id = self.set.spawn(task).id();
        self.names.insert(id, name);
    }

    /// The next task that ends; `None` when there are none. Dropping the future loses nothing.
    async fn next(&mut self) -> Option<TaskEnd> {
        let ended = self.set.join_next_with_id().await?;
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        let name = self.names.remove(&id).unwrap_or("task");
        let panicked = ended.is_err();
        tracing::debug!(task.name = name, task.panicked = panicked, "task.ended");
        Some(TaskEnd { name, panicked })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
