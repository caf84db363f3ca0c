//! The process group of a handler, and how it is ended.

use std::{io, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

use crate::stop::Stop;

/// A process group, named by its leader's process id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(Pid);

impl Group {
    /// The group that a child leads which was started in a group of its own.
    pub(super) fn of(child: &Child) -> io::Result<Self> {
        child
            .id()
            .and_then(|id| Self::from_id(i32::try_from(id).ok()?))
            .ok_or_else(|| io::Error::other("the handler has no process id"))
    }

    /// A group by its number. Those up to 1 have another meaning to kill(2): everybody.
    pub(super) fn from_id(id: i32) -> Option<Self> {
        if id > 1 { Pid::from_raw(id).map(Self) } else { None }
    }

    pub(super) fn id(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    /// Ends the child and its group: SIGTERM, and after `grace` or when the leader is gone
    /// SIGKILL for whoever is left. Returns when the leader is gone.
    pub(super) async fn end(self, child: &mut Child, grace: Duration, stop: &mut Stop) {
        self.send(Signal::TERM);
        tokio::select! {
            _ = child.wait() => {}
            () = tokio::time::sleep(grace) => {}
            () = stop.asked_now() => {}
        }
        // As long as a member lives, the kernel gives the number to nobody else.
        self.send(Signal::KILL);
        if let Err(error) = child.wait().await {
            tracing::error!(error = %error, detail = "its end can't be observed", "handler.lost");
        }
    }

    /// Sends a signal to all members; nobody left is no error.
    pub(super) fn send(self, signal: Signal) {
        match kill_process_group(self.0, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!(error = %error, "handler.not_signalled"),
        }
    }
}
