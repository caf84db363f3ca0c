//! The leases of all files are renewed before they are over, some files at a time: between two parts
//! of a pass the agent polls, so that a change never waits for it.

use chrono::{DateTime, TimeDelta, Utc};
use site_client::SshLease;
use ssh_keys::UnixUser;

use super::{
    Break, SshKeys, Why,
    file::UserFile,
    folder::{Ours, Place},
    state::Position,
    tell::tell_late,
};

/// A lease may go back by moments: while a change waits, it ends a window after that change, which may
/// have come before the moment of an earlier read.
pub(super) const MOMENTS: TimeDelta = TimeDelta::seconds(5);

/// A pass through all files.
pub(super) struct Pass {
    /// The users that are left, the next one last.
    users: Vec<UnixUser>,
    /// A moment until which every file is good that the pass has gone through.
    until: DateTime<Utc>,
    /// It was begun before a file was past its lease.
    in_time: bool,
}

impl SshKeys {
    /// Takes a lease that was read at the head. It may be earlier than the one before: the window was
    /// made shorter, or the database's clock was ahead. Then what the files say is too late.
    pub(super) fn take_lease(&mut self, lease: SshLease, position: &mut Position) {
        // One that is over lets nothing be used for longer.
        let until = if lease.is_over() { lease.until.min(position.lease) } else { lease.until };
        if position.lease - until > MOMENTS {
            self.renew_all("an earlier lease than before was given");
        }
        position.lease = until;
        position.files_until = position.files_until.min(until);
        if let Some(pass) = &mut self.pass {
            pass.until = pass.until.min(until);
        }
    }

    /// The lease of every file is renewed by a pass from the first to the last, soon. One that is
    /// under way ends before it: whatever leases come, each file has its turn.
    pub(super) fn renew_all(&mut self, detail: &'static str) {
        if !std::mem::replace(&mut self.to_renew_all, true) {
            tracing::warn!(detail, "ssh_keys.lease_went_back");
        }
    }

    /// Begins a pass where less than half of the window is left of what the files say, and goes on
    /// with one that is under way, by a batch.
    pub(super) async fn refresh(&mut self, position: &mut Position) -> Result<(), Break> {
        let Some((now, half)) = self.server_now() else { return Ok(()) };
        let Some(mut pass) = self.pass.take() else {
            let old = position.files_until - now < half && position.lease > position.files_until;
            if (old || self.to_renew_all) && self.at_head {
                let mut users = self.folder.users()?;
                users.reverse();
                // The files get other leases from here on, also where the pass does not end.
                self.state.keep(position)?;
                self.to_renew_all = false;
                self.pass = Some(Pass {
                    users,
                    until: position.lease,
                    in_time: now <= position.files_until,
                });
            }
            return Ok(());
        };
        let mut batch = self.folder.batch();
        let mut looked_at = 0;
        let mut changed = false;
        while !batch.is_full()
            && looked_at < MOST_LOOKS
            && let Some(user) = pass.users.pop()
        {
            looked_at += 1;
            // What could not be removed must not live longer.
            if position.failures.have_a_removal(&user) {
                continue;
            }
            match self.folder.look(&user)? {
                Place::Ours(Ours { id, content }) => {
                    let next = UserFile::new(content.keys.clone(), position.lease);
                    if next.to_string() != content.to_string() {
                        batch.write(&user, &next.to_string(), Some(id))?;
                    }
                }
                Place::Changed(_) => changed = true,
                // The attestation finds what is missing.
                Place::Free | Place::Taken(_) => {}
            }
        }
        for (user, obstacle) in batch.commit()? {
            let user = user.as_str();
            tracing::warn!(unix.user = user, error = %obstacle, "ssh_keys.lease_not_renewed");
        }
        let (ended, in_time) = (pass.users.is_empty(), pass.in_time);
        if ended {
            position.files_until = pass.until;
            self.state.keep(position)?;
            tracing::debug!(ssh.lease_until = %pass.until, "ssh_keys.leases_renewed");
        } else {
            self.pass = Some(pass);
        }
        let late = position.files_until < now && now < position.lease;
        // One that an agent begins who was away tells something only at its end.
        if ended || (late && in_time) {
            self.leases_are_late(late);
        }
        if changed {
            self.mend(Why::Changed)?;
        }
        self.breathe().await
    }

    /// Keeps the alarm that files are past their lease true.
    pub(super) fn leases_are_late(&mut self, late: bool) {
        if std::mem::replace(&mut self.leases_late, late) != late {
            tell_late(late);
        }
    }
}

/// Files that are looked at in one part of a pass, where most need no new lease.
const MOST_LOOKS: usize = 1_024;
