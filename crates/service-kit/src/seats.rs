//! The seats of a listener, and who gives way to a newcomer when all are taken.
//!
//! Anybody can open connections and keep them busy with nothing. So a connection is a stranger's
//! until a handler vouches for its caller, and when every seat is taken the newcomer gets that of
//! the stranger who has been there longest; where there is none, that of the caller who has been
//! without a request longest. A vouched request that is under way is never cut for a newcomer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

/// The seats of one listener.
pub(crate) struct Seats {
    free: Arc<Semaphore>,
    taken: Mutex<Taken>,
    /// A connection has come to where it may be told to leave.
    idle: Notify,
}

#[derive(Default)]
struct Taken {
    /// Counts what happens; the seats' ids and the order of their changes.
    count: u64,
    seats: HashMap<u64, Connection>,
}

struct Connection {
    standing: Standing,
    /// When it got that standing.
    since: u64,
    leave: oneshot::Sender<()>,
}

/// Ordered by who leaves first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// Nobody has vouched for its caller.
    Stranger,
    /// Its caller is known and asks for nothing now.
    Idle,
    /// A request of a known caller is under way.
    Busy,
}

/// The seat of a connection; dropping it frees it.
pub(crate) struct Seat {
    handle: SeatHandle,
    leave: oneshot::Receiver<()>,
    _permit: OwnedSemaphorePermit,
}

/// Changes the standing of a connection while it has its seat.
#[derive(Clone)]
pub(crate) struct SeatHandle {
    seats: Arc<Seats>,
    id: u64,
}

impl Seats {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { free, taken: Mutex::default(), idle: Notify::new() })
    }

    /// A seat for a connection, as soon as one is free or somebody has given way. Dropping the
    /// future loses nothing.
    pub(crate) async fn take(self: &Arc<Self>) -> Seat {
        loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                return self.seat(permit);
            }
            let idle = self.idle.notified();
            let gives_way = self.evict();
            tokio::select! {
                // It is never closed.
                Ok(permit) = Arc::clone(&self.free).acquire_owned() => return self.seat(permit),
                () = idle, if !gives_way => {}
            }
        }
    }

    fn seat(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Seat {
        let (tell, leave) = oneshot::channel();
        let mut taken = self.taken();
        let id = taken.next();
        let connection = Connection { standing: Standing::Stranger, since: id, leave: tell };
        taken.seats.insert(id, connection);
        let handle = SeatHandle { seats: Arc::clone(self), id };
        Seat { handle, leave, _permit: permit }
    }

    /// Tells the connection that gives way to leave; false where there is none.
    fn evict(&self) -> bool {
        let mut taken = self.taken();
        let last = taken
            .seats
            .iter()
            .filter(|(_, connection)| connection.standing != Standing::Busy)
            .min_by_key(|(_, connection)| (connection.standing, connection.since))
            .map(|(id, _)| *id);
        let leaving = last.and_then(|id| taken.seats.remove(&id));
        leaving.is_some_and(|connection| connection.leave.send(()).is_ok())
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

impl Seat {
    pub(crate) fn handle(&self) -> SeatHandle {
        self.handle.clone()
    }

    /// Returns when the connection has to give way.
    pub(crate) async fn given_away(&mut self) {
        if (&mut self.leave).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.handle.seats.taken().seats.remove(&self.handle.id);
    }
}

impl SeatHandle {
    /// The caller is known, and a request of it is under way.
    pub(crate) fn vouch(&self) {
        self.change(|_| Standing::Busy);
    }

    /// A request has been answered.
    pub(crate) fn answered(&self) {
        self.change(|standing| match standing {
            Standing::Busy => Standing::Idle,
            // A request that nobody vouched for is no reason to stay longer.
            other => other,
        });
        self.seats.idle.notify_one();
    }

    fn change(&self, change: impl FnOnce(Standing) -> Standing) {
        let mut taken = self.seats.taken();
        let now = taken.next();
        if let Some(connection) = taken.seats.get_mut(&self.id) {
            let standing = change(connection.standing);
            if standing != connection.standing {
                connection.standing = standing;
                connection.since = now;
            }
        }
    }
}
