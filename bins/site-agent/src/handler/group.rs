//! The process group of a handler, and how it is ended.

use std::{io, process::ExitStatus, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;

use super::stat::Stat;

/// How soon a group that was told to end is looked at again.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Each pause is twice the one before, up to this: a look may read every process of the machine.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
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

    /// Ends all members like [`Group::end`], and waits for the leader, a child; gives how that ended.
    ///
    /// # Errors
    ///
    /// As for [`Group::end`]; and when the leader lives on although nobody seems to be left: it can
    /// have made itself another user's, whom we may neither see nor signal.
    pub(super) async fn end_with_leader(
        &self,
        leader: &mut Child,
        grace: Duration,
        hurry: impl Future<Output = ()>,
    ) -> io::Result<ExitStatus> {
        self.end(grace, hurry).await?;
        tokio::time::timeout(KILLED_WITHIN, leader.wait()).await.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "the handler lives on unseen"))
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
        let mut pause = FIRST_PAUSE;
        while self.works()? {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_leader_that_can_not_be_seen_is_not_waited_for_without_limit() {
        let sleep = || {
            let mut command = tokio::process::Command::new("sleep");
            command.arg("1000").process_group(0).kill_on_drop(true).spawn().unwrap()
        };
        // For the kernel the group is gone, as it is for us where we may not see its members.
        let mut gone = sleep();
        let group = Group::of(&gone).unwrap();
        gone.kill().await.unwrap();
        let mut unseen = sleep();
        let ending = group.end_with_leader(&mut unseen, Duration::ZERO, std::future::pending());
        let ended = tokio::time::timeout(KILLED_WITHIN * 12, ending).await.unwrap();
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
