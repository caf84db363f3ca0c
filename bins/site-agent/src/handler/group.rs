//! The process group of a handler, and how it is ended.

use std::{io, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;

use super::stat::Stat;

/// How often a group that was told to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a group may take to be gone after SIGKILL.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// A process group, told apart from any other that has or gets its number.
///
/// As long as a member is there, a zombie included, the kernel gives the number to nobody else. A
/// leader with another start time is another process. Where the leader is gone, its group has to
/// be in the same session as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    id: Pid,
    session: i32,
    leader_start: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// No member is there: the number may belong to others.
    Gone,
    /// There are zombies only.
    Dead,
    /// A member may still do something.
    Works,
}

impl Group {
    /// The group that a child leads which was started in a group of its own. The child has not been
    /// waited for.
    pub(super) fn of(child: &Child) -> io::Result<Self> {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self::led_by(id.unwrap_or_default())
    }

    /// The group that a process leads.
    pub(super) fn led_by(id: i32) -> io::Result<Self> {
        Stat::of(id)?
            .and_then(|stat| Self::new(id, stat.session, stat.start))
            .ok_or_else(|| io::Error::other("the handler leads no process group"))
    }

    /// A group by what is known of it. Numbers up to 1 have another meaning to kill(2): everybody.
    pub(super) fn new(id: i32, session: i32, leader_start: u64) -> Option<Self> {
        let id = if id > 1 { Pid::from_raw(id)? } else { return None };
        Some(Self { id, session, leader_start })
    }

    pub(super) fn id(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    pub(super) fn session(&self) -> i32 {
        self.session
    }

    pub(super) fn leader_start(&self) -> u64 {
        self.leader_start
    }

    /// Whether a member may still do something.
    pub(super) fn works(&self) -> io::Result<bool> {
        Ok(self.look()? == Look::Works)
    }

    /// Ends all members: SIGTERM, and after `grace`, or at once when there is a hurry, SIGKILL for
    /// whoever is left. Returns when none of them does anything any more.
    ///
    /// The leader, if it is a child, must not be waited for meanwhile.
    ///
    /// # Errors
    ///
    /// When the members can't be observed, or live on after SIGKILL.
    pub(super) async fn end(
        &self,
        grace: Duration,
        hurry: impl Future<Output = ()>,
    ) -> io::Result<()> {
        if self.works()? {
            self.send(Signal::TERM);
            tokio::select! {
                ended = self.ended() => ended?,
                () = tokio::time::sleep(grace) => {}
                () = hurry => {}
            }
        }
        // Also where all seem dead: one that was forked during the look is not seen. Nobody forks
        // after this, so that the next look sees everybody.
        if self.look()? != Look::Gone {
            self.send(Signal::KILL);
        }
        tokio::time::timeout(KILLED_WITHIN, self.ended()).await.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "a process lives on after SIGKILL"))
        })
    }

    /// Sends a signal to all members; nobody left is no error.
    pub(super) fn send(&self, signal: Signal) {
        match kill_process_group(self.id, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!(error = %error, "handler.not_signalled"),
        }
    }

    async fn ended(&self) -> io::Result<()> {
        while self.works()? {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    fn look(&self) -> io::Result<Look> {
        let leader = Stat::of(self.id())?;
        match leader {
            Some(leader) if leader.start != self.leader_start => return Ok(Look::Gone),
            Some(leader) if leader.works => return Ok(Look::Works),
            _ => {}
        }
        // Spares the look at every process.
        if test_kill_process_group(self.id) == Err(rustix::io::Errno::SRCH) {
            return Ok(Look::Gone);
        }
        let mut members = Stat::all()?;
        members.retain(|stat| (stat.group, stat.session) == (self.id(), self.session));
        Ok(match members[..] {
            [] => Look::Gone,
            _ if members.iter().any(|member| member.works) => Look::Works,
            _ => Look::Dead,
        })
    }
}
